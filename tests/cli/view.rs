//! `memlint view` in a terminal, and where there is none.

use crate::{memlint_in, recording, root};

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let output = memlint_in(root(), &["view", &recording("seed-linear")]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(output.stdout.is_empty());
    assert!(error.contains("needs a terminal") && error.contains("memlint stats"), "{error}");
}

// Where a terminal's outer side can be opened so that no child gets it: one that holds it keeps the terminal alive.
#[cfg(target_os = "linux")]
mod in_a_terminal {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::num::NonZero;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, ExitStatus};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::fs::{Mode, OFlags, open};
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
    use vt100::Parser;

    use crate::{recording, root};

    const PATIENCE: Duration = Duration::from_mins(1);

    /// A terminal with memlint in it.
    struct Session {
        child: Child,
        keys: File,
        /// The program's side, whose settings it changes.
        inside: OwnedFd,
        before: Termios,
        said: Receiver<Vec<u8>>,
        screen: Parser,
    }

    impl Drop for Session {
        fn drop(&mut self) {
            // Where a test failed it may still be there.
            let _ = self.child.kill();
        }
    }

    /// A terminal of 24 lines and 80 columns: the side of whoever looks at it, and a program's.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outside).unwrap();
        unlockpt(&outside).unwrap();
        let name = ptsname(&outside, Vec::new()).unwrap();
        let inside = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&outside, size).unwrap();
        (outside, inside)
    }

    fn start(inside: &OwnedFd, arguments: &[&str], variables: &[(&str, &str)]) -> Child {
        let stream = || inside.try_clone().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
        command.env_clear().env("TERM", "xterm-256color").envs(variables.iter().copied());
        command.args(arguments).current_dir(root());
        command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap()
    }

    impl Session {
        fn of(arguments: &[&str], variables: &[(&str, &str)]) -> Session {
            let (outside, inside) = terminal();
            let child = start(&inside, arguments, variables);
            let (sender, said) = channel();
            let mut reader = File::from(outside.as_fd().try_clone_to_owned().unwrap());
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = reader.read(&mut buffer) {
                    if sender.send(buffer[..length].to_vec()).is_err() {
                        break;
                    }
                }
            });
            let before = tcgetattr(&inside).unwrap();
            let size = |number| NonZero::new(number).unwrap();
            let screen = Parser::new(size(24), size(80), 0);
            Session { child, keys: File::from(outside), inside, before, said, screen }
        }

        /// Waits until the screen shows some words.
        fn shows(&mut self, words: &str) {
            let until = Instant::now() + PATIENCE;
            while !self.text().contains(words) {
                let left = until.saturating_duration_since(Instant::now());
                let said = self.said.recv_timeout(left);
                assert!(said.is_ok(), "no `{words}` in:\n{}", self.text());
                self.screen.process(&said.unwrap());
            }
        }

        fn text(&self) -> String {
            self.screen.screen().contents()
        }

        fn types(&mut self, keys: &str) {
            self.keys.write_all(keys.as_bytes()).unwrap();
        }

        /// Waits for the end. The terminal is as it was.
        fn ends(mut self) -> (ExitStatus, String) {
            let until = Instant::now() + PATIENCE;
            let status = loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    break status;
                }
                assert!(Instant::now() < until, "it goes on:\n{}", self.text());
                thread::sleep(Duration::from_millis(10));
            };
            while let Ok(said) = self.said.recv_timeout(Duration::from_millis(200)) {
                self.screen.process(&said);
            }
            let screen = self.screen.screen();
            assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", self.text());
            let after = tcgetattr(&self.inside).unwrap();
            assert_eq!(after.local_modes, self.before.local_modes);
            assert_eq!(after.input_modes, self.before.input_modes);
            assert_eq!(after.output_modes, self.before.output_modes);
            (status, self.text())
        }
    }

    fn looking(variables: &[(&str, &str)]) -> Session {
        let mut session = Session::of(&["view", "--isolated", &recording("grow-replay-bug")], variables);
        session.shows("press f for the first finding");
        session
    }

    #[test]
    fn keys_lead_to_the_line_and_out_again() {
        let mut session = looking(&[]);
        assert!(session.screen.screen().alternate_screen());
        session.types("f");
        session.shows("[growing-residency]");
        session.types("\t/observe\r");
        session.shows("in observe");
        session.types("?");
        session.shows("any key goes back");
        session.types(" \x1b[D\x1b[C");
        session.shows("finding 1 of");
        session.types("q");
        let (status, _) = session.ends();
        assert_eq!(status.code(), Some(0));
    }

    #[test]
    fn a_finding_without_lifetimes_leads_to_where_it_shows() {
        let mut session = Session::of(&["view", "--isolated", &recording("seed-oom")], &[]);
        session.shows("press f for the first finding");
        session.types("f");
        session.shows("[oom]");
        assert!(!session.text().contains("0 B in use"), "{}", session.text());
    }

    #[test]
    fn control_c_leaves() {
        let mut session = looking(&[]);
        session.types("\x03");
        assert_eq!(session.ends().0.code(), Some(0));
    }

    #[test]
    fn a_signal_ends_it_and_the_terminal_is_given_back() {
        let session = looking(&[]);
        let pid = Pid::from_child(&session.child);
        kill_process(pid, Signal::TERM).unwrap();
        let (status, _) = session.ends();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    }

    #[test]
    fn it_ends_with_its_terminal() {
        let (outside, inside) = terminal();
        let mut child = start(&inside, &["view", "--isolated", &recording("grow-replay-bug")], &[]);
        drop(inside);
        let mut outside = File::from(outside);
        let (mut screen, mut buffer) = (Parser::default(), [0; 4096]);
        while !screen.screen().contents().contains("press f for the first finding") {
            let length = outside.read(&mut buffer).unwrap();
            screen.process(&buffer[..length]);
        }
        drop(outside);
        let until = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
                panic!("it goes on without a terminal");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_terminal_that_cannot_draw_is_none() {
        let session = Session::of(&["view", &recording("seed-linear")], &[("TERM", "dumb")]);
        let (status, text) = session.ends();
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.contains("needs a terminal"), "{text}");
    }

    #[test]
    fn without_colours_none_is_sent() {
        let colored = |session: &Session| {
            let cell = |row, column| session.screen.screen().cell(row, column).map(vt100::Cell::fgcolor);
            (0..24).any(|row| {
                (0..80).any(|column| cell(row, column).is_some_and(|one| one != vt100::Color::Default))
            })
        };
        let mut session = looking(&[("NO_COLOR", "1")]);
        assert!(!colored(&session));
        session.types("q");
        session.ends();
        let mut session = looking(&[]);
        assert!(colored(&session));
        session.types("q");
        session.ends();
    }
}
