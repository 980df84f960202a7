"""https:// and, on this machine alone, http://."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
from pathlib import Path
from typing import Tuple

import pytest
from conftest import LEAK, Memlint, free_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from server import Server

#: What stands in for a signature.
SIGNED = "?X-Amz-Signature=5ec7e7"
WELL = ["plain", "tagged", "chunked", "no-length", "resumed", "redirected", "busy-once"]


def verdict(run: Memlint, path: str) -> str:
    """What `check` says of a snapshot, but for its name."""
    ran = run("check", path, "--isolated", "--output-format", "json")
    assert ran.status == 1, ran
    return ran.out.replace(path, "SNAPSHOT").replace(path.split("?", maxsplit=1)[0], "SNAPSHOT")


@pytest.mark.parametrize("behaviour", WELL)
def test_what_comes_is_what_lies_there(run: Memlint, web: Server, behaviour: str) -> None:
    address = f"{web.address}/{behaviour}/rank0.pickle.zst{SIGNED}"
    shutil.copy(LEAK, run.folder / "rank0.pickle.zst")
    here = verdict(run, "rank0.pickle.zst")
    assert verdict(run, address).replace(f"{web.address}/{behaviour}/rank*", "rank*") == here
    assert web.asked[0][0].endswith(SIGNED)


def test_every_command_that_takes_a_snapshot(run: Memlint, web: Server) -> None:
    address = f"{web.address}/plain/rank0.pickle.zst"
    assert "iteration" in run("stats", address).out
    assert run("diff", address, address).status == 0
    assert run("report", address, "-o", "page.html").status == 0
    assert (run.folder / "page.html").stat().st_size > 10_000
    assert run("examine", address, "-o", "rank0.memlint").status == 0
    concluded = run("conclude", "rank0.memlint", "--isolated")
    assert concluded.status == 1
    assert concluded.out == run("check", address, "--isolated").out
    assert run("check", address, "--against", address).status == 0
    assert run("slice", address, "--iterations", "2..3", "-o", "small.pickle").status == 0


def test_nothing_secret_is_shown(run: Memlint, web: Server) -> None:
    with_secrets = f"{web.address}/{{}}/rank0.pickle.zst{SIGNED}"
    for behaviour in ["plain", "forbidden", "login", "nothing", "busy", "loop", "changed", "no-tag"]:
        for command in (["check", "-v"], ["stats"], ["check", "--output-format", "sarif"], ["diff", str(LEAK)]):
            ran = run(*command, with_secrets.format(behaviour))
            told = ran.out + ran.err
            assert not any(one in told for one in ("5ec7", "X-Amz", "sign-this")), told
    asked = len(web.asked)
    told = run.fails("check", web.address.replace("//", "//me:pass5ec7@") + "/plain")
    assert "a user or a password" in told
    assert "5ec7" not in told
    assert len(web.asked) == asked


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("forbidden", ["may not be read: the server says 403 Forbidden (SignatureDoesNotMatch)", "expired"]),
        ("login", ["401 Unauthorized", "curl -fsSL -H"]),
        ("nothing", ["there is no object"]),
        ("busy", ["503 Service Unavailable", "try again later"]),
        ("restless", ["broke off after 4096 bytes", "not for the first time"]),
        ("no-ranges", ["broke off after", "the server has no ranges"]),
        ("no-tag", ["broke off after", "ETag"]),
        ("weak-tag", ["broke off after", "ETag"]),
        ("changed", ["changed while it was read", "is the job still writing it?"]),
        ("changed-all-the-same", ["changed while it was read"]),
        ("removed", ["changed while it was read"]),
        ("endless-error", ["there is no object"]),
        ("to?file:///etc/passwd", ["redirects to what is no https:// address", "which memlint does not follow"]),
        ("to?ftp://127.0.0.1/a", ["redirects to another scheme"]),
        ("to?https://127.0.0.1/a", ["redirects from http to https"]),
        ("to?http://localhost.invalid/a", ["redirects to another machine without encryption"]),
        ("loop", ["redirects again and again"]),
    ],
)
def test_what_goes_wrong_is_told(run: Memlint, web: Server, behaviour: str, words: list[str]) -> None:
    told = run.fails("check", f"{web.address}/{behaviour}", within=20)
    assert web.address in told
    for word in words:
        assert word in told, told


def test_what_may_pass_is_asked_three_times(run: Memlint, web: Server) -> None:
    run.fails("check", f"{web.address}/busy")
    assert len(web.asked) == 3
    run.fails("check", f"{web.address}/forbidden")
    assert len(web.asked) == 4


def test_an_endless_object_is_cut_off_in_bounded_memory(run: Memlint, web: Server) -> None:
    ran = run("check", f"{web.address}/endless", "--max-bytes", "256MiB")
    assert ran.status == 2
    assert "`--max-bytes`" in ran.err
    assert ran.peak < 150, ran


def test_one_bad_object_does_not_hide_the_others(run: Memlint, web: Server) -> None:
    good = f"{web.address}/plain/rank0.pickle.zst"
    ran = run("check", good, f"{web.address}/forbidden/rank1.pickle.zst{SIGNED}")
    assert ran.status == 2
    assert ran.out.startswith("no verdict: 1 of 2 files could not be read\n"), ran.out
    assert "missing-zero-grad" in ran.out
    assert "403 Forbidden" in ran.out
    assert "5ec7" not in ran.out + ran.err


def test_nobody_is_waited_for_long(run: Memlint) -> None:
    host = f"http://127.0.0.1:{free_port()}"
    told = run.fails("check", f"{host}/rank0.pickle", within=10)
    assert "cannot be reached: Connection refused" in told
    ran = run("check", *(f"{host}/rank{rank}.pickle" for rank in range(40)), within=10)
    assert ran.status == 2
    assert "40 of 40 files could not be read" in ran.out + ran.err
    told = run.fails("check", "https://host.invalid/rank0.pickle", within=30)
    assert "cannot be reached" in told


def test_silence_ends(run: Memlint, web: Server) -> None:
    ran = run("check", f"{web.address}/silent/rank0.pickle", f"{web.address}/silent/rank1.pickle", within=40)
    assert ran.status == 2
    assert "the server was silent for 30 s" in " ".join(ran.out.split())
    assert len(web.asked) == 1


def test_http_is_of_this_machine_alone(run: Memlint) -> None:
    for address in ("http://example.com/a", "http://10.0.0.1/a", "http://127.0.0.1.example.com/a"):
        told = run.fails("check", address, within=2)
        assert "would be read without encryption" in told
    assert "no address" in run.fails("check", "http://example.com\\@127.0.0.1/a", within=2)
    assert "no address" in run.fails("check", "http://127.0.0.1@example.com/a", within=2)
    assert "no address" in run.fails("check", "https:///a", within=2)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tuple[str, str]:
    """Of a server on this machine, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "memlint's tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    (folder / "certificate.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    return str(folder / "certificate.pem"), str(folder / "key.pem")


def test_https(run: Memlint, web: Server, certificate: Tuple[str, str]) -> None:
    with Server(LEAK.read_bytes(), certificate) as secure:
        address = f"{secure.address}/resumed/rank0.pickle.zst"
        trusted = {"SSL_CERT_FILE": certificate[0]}
        ran = run("check", address, "--isolated", env=trusted)
        assert ran.status == 1, ran
        told = run.fails("check", address, within=20)
        assert "cannot be reached: invalid peer certificate" in told
        assert "SSL_CERT_FILE" in told
        told = run.fails("check", f"{secure.address}/to?{web.address}/plain", env=trusted)
        assert "redirects from https to http" in told
        assert not web.asked


def snapshot_that_names(run: Memlint, address: str) -> Path:
    """A leak whose lines stand in files that are addresses."""
    import pickle

    assert run("slice", str(LEAK), "--iterations", "1..", "-o", "named.pickle").status == 0
    path = run.folder / "named.pickle"
    snapshot = pickle.loads(path.read_bytes())
    named = 0
    for event in snapshot["device_traces"][0]:
        for frame in event.get("frames", ()):
            if frame["filename"].endswith("train.py"):
                frame["filename"] = f"{address}/train.py"
                named += 1
    assert named
    path.write_bytes(pickle.dumps(snapshot, protocol=4))
    return path


def test_only_what_is_typed_is_fetched(run: Memlint, web: Server) -> None:
    address = f"{web.address}/plain"
    named = str(snapshot_that_names(run, web.address))
    assert web.address in run("check", named, "-v").out
    configurations = [
        f'baseline = "{address}/baseline.json"\n',
        f'[source]\nroots = ["{address}"]\n',
        f'[source]\npath-map = ["/home={address}"]\n',
    ]
    for text in configurations:
        (run.folder / "memlint.toml").write_text(text)
        ran = run("check", named)
        assert ran.status in (1, 2), ran
        assert run("fix", named).status in (0, 1, 2)
    (run.folder / "memlint.toml").unlink()
    for env in ({"MEMLINT_BASELINE": address}, {"MEMLINT_CONFIG": address}):
        assert run("check", named, env=env).status == 2
    assert run("check", named, "--source-root", address).status == 2
    # What a part calls its snapshot is a name, too.
    assert run("examine", named, "--name", f"{address}/rank0.pickle", "-o", "rank0.memlint").status == 0
    assert f"{address}/rank0.pickle" in run("conclude", "rank0.memlint", "--output-format", "json").out
    assert "is an address, and parts are read from files" in run.fails("conclude", f"{address}/rank0.memlint")
    told = run.fails("record", "-o", address, "--", "true")
    assert "recordings are written to files" in told
    assert web.met == 0
