//! Arguments that look like secrets: passwords, keys and tokens have no business in a file that is shown to others.

/// What stands in their place.
const LEFT_OUT: &str = "(left out)";

/// Words that name a secret, as parts of a name: `--hf-token`, `WANDB_API_KEY`.
const NAMES: [&str; 13] = [
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "key",
    "apikey",
    "auth",
    "credential",
    "credentials",
    "cookie",
];

/// How secrets of well-known services begin.
const BEGINNINGS: [&str; 10] =
    ["hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "eyJ"];

/// The arguments of a command without what looks like a secret.
pub(super) fn without_secrets<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut shown = Vec::new();
    let mut follows_name = false;
    for argument in arguments {
        shown.push(if follows_name && !argument.starts_with('-') {
            LEFT_OUT.to_owned()
        } else {
            cleaned(argument)
        });
        follows_name = argument.starts_with('-') && !argument.contains('=') && names_secret(argument);
    }
    shown
}

/// An argument; the text of a script (`bash -c`) is cleaned word by word.
fn cleaned(argument: &str) -> String {
    if argument.contains(char::is_whitespace) {
        return without_secrets(argument.split_whitespace()).join(" ");
    }
    match argument.split_once('=') {
        Some((name, _)) if names_secret(name) => format!("{name}={LEFT_OUT}"),
        Some((name, value)) if is_secret(value) => format!("{name}={LEFT_OUT}"),
        _ if is_secret(argument) => LEFT_OUT.to_owned(),
        _ => argument.to_owned(),
    }
}

fn names_secret(name: &str) -> bool {
    let lowercase = name.to_ascii_lowercase();
    lowercase.split(|letter: char| !letter.is_ascii_alphabetic()).any(|part| NAMES.contains(&part))
}

/// Whether a value is one by itself: a service's token, or an address with a password in it.
fn is_secret(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let has_password = value
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .is_some_and(|host| host.split_once('@').is_some_and(|(user, _)| user.contains(':')));
    has_password || (value.len() >= 16 && BEGINNINGS.iter().any(|beginning| value.starts_with(beginning)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &str) -> String {
        without_secrets(arguments.split(' ')).join(" ")
    }

    #[test]
    fn secrets_are_left_out() {
        for (given, kept) in [
            ("--hf-token abcdef --lr 1", "--hf-token (left out) --lr 1"),
            ("--api_key=abcdef", "--api_key=(left out)"),
            ("env WANDB_API_KEY=abcdef python", "env WANDB_API_KEY=(left out) python"),
            ("--model=hf_abcdefghijklmnopqrst", "--model=(left out)"),
            ("hf_abcdefghijklmnopqrst", "(left out)"),
            ("--data s3://me:word@host/path", "--data (left out)"),
        ] {
            assert_eq!(shown(given), kept);
        }
        let script = without_secrets(["export SECRET='x'; python train.py"].into_iter());
        assert_eq!(script, ["export SECRET=(left out) python train.py"]);
    }

    #[test]
    fn other_arguments_stay() {
        for given in
            ["--tokenizer gpt2", "--tokens 100", "--monkey 3", "--no-auth --lr 3", "--data s3://host/a@b"]
        {
            assert_eq!(shown(given), given);
        }
    }
}
