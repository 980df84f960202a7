"""s3://, gs:// and az://, each against a server that speaks its protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List

import boto3
import pytest
from azure.storage.blob import BlobServiceClient
from conftest import LEAK, RANKS, Memlint, free_port, program, start, stop
from server import Server

KEY = "AKIA5EC7E7"
SECRET = "secret5ec7e7secret5ec7e7secret"
#: What lies in every bucket of these tests.
LYING = {
    "leak.pickle.zst": LEAK,
    "job/rank0_memory_snapshot.pickle.zst": RANKS / "rank0_memory_snapshot.pickle.zst",
    "job/rank1_memory_snapshot.pickle.zst": RANKS / "rank1_memory_snapshot.pickle.zst",
    "job/.old/rank2_memory_snapshot.pickle.zst": RANKS / "rank0_memory_snapshot.pickle.zst",
    "job/train.py": Path(__file__),
    "times/iteration_2/rank0.pickle.zst": LEAK,
    "times/iteration_10/rank0.pickle.zst": LEAK,
}


class Moto:
    """A store of Amazon's."""

    def __init__(self, folder: Path, unsigned: int = 1 << 30) -> None:
        """Of so many requests nobody asks who sent them."""
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        env = {"INITIAL_NO_AUTH_ACTION_COUNT": str(unsigned)}
        log = folder / f"moto-{port}.txt"
        self.process = start([program("moto_server"), "-H", "127.0.0.1", "-p", str(port)], port, log, env)

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.address,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )

    @property
    def env(self) -> Dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    moto = Moto(tmp_path_factory.mktemp("moto"))
    moto.client.create_bucket(Bucket="runs")
    for key, path in LYING.items():
        moto.client.put_object(Bucket="runs", Key=key, Body=path.read_bytes(), ACL="public-read")
    yield moto
    stop(moto.process)


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dict[str, str]]:
    """The environment in which memlint finds it."""
    folder, port = tmp_path_factory.mktemp("azurite"), free_port()
    command = [program("azurite-blob"), "--silent", "--blobPort", str(port)]
    command += ["--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence"]
    process = start(command, port, folder / "log.txt")
    address = f"http://127.0.0.1:{port}"
    # Azurite's own account, which its manual prints.
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    named = f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key};"
    service = BlobServiceClient.from_connection_string(f"{named}BlobEndpoint={address}/devstoreaccount1;")
    service.create_container("runs")
    for name, path in LYING.items():
        service.get_blob_client("runs", name).upload_blob(path.read_bytes())
    yield {
        "AZURE_STORAGE_USE_EMULATOR": "true",
        "AZURITE_BLOB_STORAGE_URL": address,
        "AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1",
        "AZURE_STORAGE_ACCOUNT_KEY": key,
    }
    stop(process)


@pytest.fixture(params=["s3", "gs", "az"])
def store(request: pytest.FixtureRequest) -> Dict[str, str]:
    """The environment of a store, and its scheme."""
    scheme: str = request.param
    if scheme == "az":
        return {"SCHEME": scheme, **request.getfixturevalue("azurite")}
    moto: Moto = request.getfixturevalue("moto")
    if scheme == "s3":
        return {"SCHEME": scheme, **moto.env}
    # Google's XML API is Amazon's, but for how requests are signed, which moto does not look at here.
    return {
        "SCHEME": scheme,
        "GOOGLE_BASE_URL": moto.address,
        "GOOGLE_ALLOW_HTTP": "true",
        "GOOGLE_BEARER_TOKEN": "ya29.secret5ec7e7",
    }


def local(folder: Path) -> None:
    for name, path in LYING.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(path.read_bytes())


@pytest.mark.parametrize(
    "named",
    [
        ["leak.pickle.zst"],
        ["job/"],
        ["job/rank*.zst"],
        ["times/"],
        ["times/iteration_*"],
        ["times/**/rank0.*"],
        ["times/iteration_10/rank0.pickle.zst", "leak.pickle.zst"],
    ],
)
def test_a_store_is_read_like_a_folder(run: Memlint, store: Dict[str, str], named: List[str]) -> None:
    local(run.folder)
    root = f"{store['SCHEME']}://runs/"
    for command in (["check", "--isolated", "--output-format", "json"], ["stats", "--output-format", "json"]):
        here = run(*command, *named)
        there = run(*command, *(root + one for one in named), env=store)
        assert there.status == here.status, there
        # What the folder has and the bucket has not is named alike.
        assert there.out.replace(root, "") == here.out
        assert there.err.replace(root, "") == here.err


def test_the_times_of_a_job_are_in_their_order(run: Memlint, store: Dict[str, str]) -> None:
    root = f"{store['SCHEME']}://runs/times"
    told = run("stats", f"{root}/", env=store).out
    assert told.index(f"{root}/iteration_2/") < told.index(f"{root}/iteration_10/")


def test_what_is_not_there_is_told(run: Memlint, store: Dict[str, str]) -> None:
    root = f"{store['SCHEME']}://runs"
    assert "there is no object" in run.fails("check", f"{root}/rank7.pickle", env=store)
    told = run.fails("check", f"{store['SCHEME']}://elsewhere/rank0.pickle", env=store)
    assert "there is no bucket `elsewhere`" in told
    told = run.fails("check", f"{store['SCHEME']}://elsewhere/", env=store)
    assert "there is no bucket `elsewhere`" in told
    assert "no objects below" in run.fails("check", f"{root}/nothing/", env=store)
    assert "no object matches" in run.fails("check", f"{root}/rank*.pickle", env=store)
    assert "is wrong as a pattern" in run.fails("check", f"{root}/a**.pickle", env=store)
    assert "is no address" in run.fails("check", f"{root}/a//b.pickle", env=store)
    assert "is no address" in run.fails("check", f"{store['SCHEME']}:///b.pickle", env=store)
    told = run.fails("check", f"{store['SCHEME']}://{KEY}:{SECRET}@runs/b.pickle", env=store)
    assert "keys and passwords belong in the environment" in told
    assert SECRET not in told


def test_wrong_credentials(run: Memlint, tmp_path: Path) -> None:
    moto = Moto(tmp_path, unsigned=2)
    try:
        moto.client.create_bucket(Bucket="runs")
        moto.client.put_object(Bucket="runs", Key="leak.pickle.zst", Body=LEAK.read_bytes())
        for path in ("s3://runs/leak.pickle.zst", "s3://runs/"):
            told = run.fails("check", path, env=moto.env)
            assert "may not be read: the server says 403 Forbidden (InvalidAccessKeyId)" in told
            assert "set here: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL" in told
            assert KEY not in told
            assert SECRET not in told
    finally:
        stop(moto.process)


def test_wrong_credentials_of_azure(run: Memlint, azurite: Dict[str, str]) -> None:
    wrong = "c2VjcmV0NWVjN2U3c2VjcmV0NWVjN2U3c2VjcmV0NWVjN2U3"
    told = run.fails("check", "az://runs/leak.pickle.zst", env={**azurite, "AZURE_STORAGE_ACCOUNT_KEY": wrong})
    assert "403 Forbidden" in told
    assert "set here: AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY)" in told
    assert wrong not in told


def test_a_signed_address(run: Memlint, moto: Moto) -> None:
    parameters = {"Bucket": "runs", "Key": "leak.pickle.zst"}
    address = moto.client.generate_presigned_url("get_object", Params=parameters)
    assert "Signature=" in address
    ran = run("check", address, "--isolated")
    assert ran.status == 1
    assert f"{moto.address}/runs/leak.pickle.zst" in run("stats", address).out
    assert "Signature" not in ran.out + ran.err


def test_what_the_environment_lacks_or_says_wrongly(run: Memlint, moto: Moto) -> None:
    told = run.fails("check", "s3://runs/a", env={"AWS_ACCESS_KEY_ID": KEY})
    assert "Missing SecretAccessKey" in told
    assert KEY not in told
    told = run.fails("check", "az://runs/a")
    assert "AZURE_STORAGE_ACCOUNT_NAME" in told
    told = run.fails("check", "gs://runs/a", env={"GOOGLE_APPLICATION_CREDENTIALS": "nowhere.json"})
    assert "No such file" in told
    plain = {name: value for name, value in moto.env.items() if name != "AWS_ALLOW_HTTP"}
    told = run.fails("check", "s3://runs/leak.pickle.zst", env=plain)
    assert "would be read without encryption" in told
    assert "AWS_ALLOW_HTTP=true" in told
    plain = {"GOOGLE_BASE_URL": moto.address, "GOOGLE_SKIP_SIGNATURE": "true"}
    assert "GOOGLE_ALLOW_HTTP=true" in run.fails("check", "gs://runs/leak.pickle.zst", env=plain)


def test_nothing_to_show(run: Memlint, moto: Moto) -> None:
    """The machine is asked for credentials, which here is a port where nobody listens, and not again for the next rank."""
    machine = f"http://127.0.0.1:{free_port()}"
    env = {"AWS_ENDPOINT_URL": moto.address, "AWS_ALLOW_HTTP": "true", "AWS_METADATA_ENDPOINT": machine}
    told = run.fails("check", "s3://runs/leak.pickle.zst", env=env, within=10)
    assert (
        "no credentials for `s3://runs/leak.pickle.zst`: the environment has none, and the machine gives none" in told
    )
    assert "set here: AWS_ENDPOINT_URL" in told
    ran = run("check", "s3://runs/leak.pickle.zst", "s3://runs/other.pickle.zst", env=env, within=10)
    assert "no credentials for `s3://runs/other.pickle.zst`" in " ".join(ran.out.split())
    assert run("check", "s3://runs/leak.pickle.zst", env={**env, "AWS_SKIP_SIGNATURE": "true"}).status == 1


def test_a_store_that_is_not_there(run: Memlint, moto: Moto) -> None:
    env = {**moto.env, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    for path in ("s3://runs/leak.pickle.zst", "s3://runs/"):
        told = run.fails("check", path, env=env, within=10)
        assert "cannot be reached: Connection refused" in told
        assert "AWS_ENDPOINT_URL" in told


@pytest.mark.parametrize("behaviour", ["changed", "removed"])
def test_an_object_that_changes(run: Memlint, web: Server, behaviour: str) -> None:
    env = {"GOOGLE_BASE_URL": web.address, "GOOGLE_ALLOW_HTTP": "true", "GOOGLE_SKIP_SIGNATURE": "true"}
    told = run.fails("check", f"gs://{behaviour}/rank0.pickle.zst", env=env)
    assert f"`gs://{behaviour}/rank0.pickle.zst` changed while it was read" in told


def test_credentials_are_sent_and_not_shown(run: Memlint, web: Server) -> None:
    token = "ya29.secret5ec7e7"
    env = {"GOOGLE_BASE_URL": web.address, "GOOGLE_ALLOW_HTTP": "true", "GOOGLE_BEARER_TOKEN": token}
    told = run.fails("check", "gs://forbidden/rank0.pickle", env=env)
    assert web.asked[-1][1]["authorization"] == f"Bearer {token}"
    assert token not in told


def test_objects_are_not_stored(run: Memlint, moto: Moto) -> None:
    """No file is written on the way: `strace` would be better, and is not everywhere."""
    before = sorted(run.folder.parent.rglob("*"))
    ran = run("check", "s3://runs/leak.pickle.zst", env={**moto.env, "TMPDIR": str(run.folder / "nowhere")})
    assert ran.status == 1
    after = sorted(path for path in run.folder.parent.rglob("*") if path.name not in ("out.txt", "err.txt"))
    assert after == before


def test_this_build_reads_remotely(run: Memlint) -> None:
    assert "built without" not in run.fails("check", "s3://", within=5)
