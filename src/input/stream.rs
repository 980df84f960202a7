//! The bytes of one snapshot as they come: unpacked, counted, and cut off at the limits.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Cursor, ErrorKind, Read};
use std::rc::Rc;

use super::container::{self, Container};
use super::foreign::Foreign;
use super::remote::RemoteError;
use super::{InputError, Limits, html};

/// Bytes that any file may become, whatever its compressed size.
const FREE_BYTES: u64 = 256 << 20;

/// The largest page that is read: it is held whole, and what it holds beside it. A browser shows none of this size.
const MOST_PAGE: u64 = 1 << 30;

/// The pickle of a snapshot as a stream. Where reading fails, [`Stream::into_failure`] knows why in the words of the
/// input: a damaged archive, a bomb, a limit.
pub struct Stream {
    name: String,
    bytes: Box<dyn Read>,
    compression: Option<&'static str>,
    limits: Limits,
    /// Bytes taken from the file.
    packed: Rc<Cell<u64>>,
    /// Bytes given to the reader.
    unpacked: u64,
    failure: Option<InputError>,
}

/// What a file holds, and the stream of it.
#[derive(Debug)]
pub enum Content {
    /// The pickle of a snapshot.
    Snapshot(Stream),
    /// The JSON of a memory timeline or a trace of PyTorch's profiler.
    Timeline(Stream),
}

/// Counts what is read.
struct CountedReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

impl Stream {
    /// Unpacks a file's bytes.
    pub(super) fn open(
        name: String,
        file: impl Read + 'static,
        limits: Limits,
    ) -> Result<Content, InputError> {
        let packed = Rc::new(Cell::new(0));
        let mut file = CountedReader { inner: file, count: Rc::clone(&packed) };
        let head = container::head(&mut file).map_err(|source| unreadable(&name, None, source))?;
        let kind = Container::of(&head);
        let whole = Cursor::new(head).chain(file);
        let compression = kind.compression();
        let bytes = kind.unpack(whole).map_err(|source| unreadable(&name, compression, source))?;
        let stream = Stream { name, bytes, compression, limits, packed, unpacked: 0, failure: None };
        stream.check_content()
    }

    /// Looks at what was unpacked: a pickle and a timeline go on as they are, a page is searched for the pickle inside.
    fn check_content(mut self) -> Result<Content, InputError> {
        let head = match container::head(&mut self) {
            Ok(head) => head,
            Err(source) => {
                return Err(self.failure.unwrap_or_else(|| unreadable(&self.name, None, source)));
            }
        };
        let name = self.name.clone();
        match Container::of(&head) {
            Container::Pickle => Ok(Content::Snapshot(self.rewound(head))),
            Container::Html if html::is_drawn_timeline(&head) => Err(InputError::DrawnTimeline { name }),
            Container::Html => self.find_in_page(head, MOST_PAGE).map(Content::Snapshot),
            _ if head.is_empty() => Err(InputError::Empty { name }),
            _ if container::begins_like_a_timeline(&head) || container::begins_like_a_trace(&head) => {
                Ok(Content::Timeline(self.rewound(head)))
            }
            _ => {
                let Foreign { found, next } = Foreign::of(&name, &head);
                let found = match self.compression {
                    Some(compression) => format!("{found} inside {compression}"),
                    None => found,
                };
                Err(InputError::NotASnapshot { name, found, next })
            }
        }
    }

    /// The stream with what was looked at before the rest.
    fn rewound(mut self, head: Vec<u8>) -> Stream {
        let rest = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
        self.bytes = Box::new(Cursor::new(head).chain(rest));
        self.unpacked = 0;
        self
    }

    /// Goes on with the pickle inside a page of at most `most` bytes.
    fn find_in_page(mut self, head: Vec<u8>, most: u64) -> Result<Stream, InputError> {
        let name = self.name.clone();
        let mut page = head;
        let room = (most + 1).saturating_sub(page.len() as u64);
        if let Err(source) = self.by_ref().take(room).read_to_end(&mut page) {
            return Err(self.failure.unwrap_or_else(|| unreadable(&name, None, source)));
        }
        if page.len() as u64 > most {
            return Err(InputError::PageTooLarge { name, limit: most });
        }
        let pickle = html::snapshot(&page).ok_or(InputError::PageWithoutSnapshot { name })?;
        self.bytes = Box::new(Cursor::new(pickle));
        self.unpacked = 0;
        Ok(self)
    }

    /// Why reading failed, if it was the input's fault.
    pub fn into_failure(self) -> Option<InputError> {
        self.failure
    }

    fn limit_error(&self) -> Option<InputError> {
        let name = || self.name.clone();
        if self.unpacked > self.limits.bytes {
            return Some(InputError::TooLarge { name: name(), limit: self.limits.bytes });
        }
        let kind = self.compression?;
        let most = self.packed.get().saturating_mul(self.limits.ratio).max(FREE_BYTES);
        (self.unpacked > most).then(|| InputError::Bomb { name: name(), kind, limit: self.limits.ratio })
    }

    fn fail(&mut self, failure: InputError) -> io::Error {
        let message = failure.to_string();
        self.failure = Some(failure);
        io::Error::other(message)
    }
}

/// Why bytes cannot be read: what came between memlint and an object, however deep in a container, or else what the system or the
/// container's reader says.
fn unreadable(name: &str, compression: Option<&'static str>, source: io::Error) -> InputError {
    match (source.downcast::<RemoteError>(), compression) {
        (Ok(error), _) => InputError::Remote(error),
        (Err(source), Some(kind)) => InputError::Broken { name: name.to_owned(), kind, source },
        (Err(source), None) => InputError::Unreadable { name: name.to_owned(), source },
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(buffer) {
            Ok(read) => {
                self.unpacked += read as u64;
                match self.limit_error() {
                    Some(failure) => Err(self.fail(failure)),
                    None => Ok(read),
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(source) => {
                let failure = unreadable(&self.name, self.compression, source);
                Err(self.fail(failure))
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.name)
            .field("unpacked", &self.unpacked)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], limits: Limits) -> Result<Vec<u8>, InputError> {
        let content = Stream::open("file".to_owned(), Cursor::new(bytes.to_vec()), limits)?;
        let (Content::Snapshot(mut stream) | Content::Timeline(mut stream)) = content;
        let mut all = Vec::new();
        match stream.read_to_end(&mut all) {
            Ok(_) => Ok(all),
            Err(_) => Err(stream.into_failure().unwrap()),
        }
    }

    fn packed(content: &[u8]) -> Vec<u8> {
        zstd::encode_all(content, 1).unwrap()
    }

    #[test]
    fn containers_are_told_by_content() {
        let pickle = [&[0x80, 4][..], &[b'N'; 2000], b"."].concat();
        let mut gzip = flate2::read::GzEncoder::new(pickle.as_slice(), flate2::Compression::fast());
        let mut xz = liblzma::read::XzEncoder::new(pickle.as_slice(), 1);
        let (mut gzipped, mut xzed) = (Vec::new(), Vec::new());
        gzip.read_to_end(&mut gzipped).unwrap();
        xz.read_to_end(&mut xzed).unwrap();
        for bytes in [pickle.clone(), packed(&pickle), gzipped, xzed] {
            assert_eq!(read(&bytes, Limits::default()).unwrap(), pickle);
        }
    }

    #[test]
    fn bombs_and_large_files_are_cut_off() {
        let zeros = [&[0x80, 4][..], &vec![0; 300 << 20]].concat();
        let bomb = packed(&zeros);
        assert!(matches!(read(&bomb, Limits::default()), Err(InputError::Bomb { limit: 400, .. })));
        let limits = Limits { bytes: 1000, ratio: 400 };
        assert!(matches!(read(&bomb, limits), Err(InputError::TooLarge { limit: 1000, .. })));
    }

    #[test]
    fn pages_have_a_limit_of_their_own() {
        let page = br#"<html><script>const files = [{"name": "s", "base64": "gAQu"}]</script></html>"#;
        let find = |most| {
            let empty = Stream {
                name: "page".to_owned(),
                bytes: Box::new(Cursor::new(page[20..].to_vec())),
                compression: None,
                limits: Limits::default(),
                packed: Rc::default(),
                unpacked: 0,
                failure: None,
            };
            empty.find_in_page(page[..20].to_vec(), most)
        };
        assert!(find(page.len() as u64).is_ok());
        let refused = find(page.len() as u64 - 1);
        assert!(matches!(refused, Err(InputError::PageTooLarge { limit: 76.., .. })), "{refused:?}");
    }

    #[test]
    fn an_archive_that_breaks_off_is_said_to_be_broken() {
        let noise = (0..100_000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes());
        let pickle: Vec<u8> = [0x80, 4].into_iter().chain(noise).collect();
        let whole = packed(&pickle);
        let broken = &whole[..whole.len() / 2];
        assert!(matches!(read(broken, Limits::default()), Err(InputError::Broken { kind: "zstd", .. })));
    }

    #[test]
    fn timelines_are_told_from_other_lists_and_come_whole() {
        let open =
            |bytes: &[u8]| Stream::open("file".to_owned(), Cursor::new(packed(bytes)), Limits::default());
        let events = format!("[{}[17, 2, 512, 4]]", "[-1, 1, 4096, 0], ".repeat(100));
        for timeline in [events.as_str(), "[[10.5, 11], [[0, 1, 2]]]", "[[], []]", "[]"] {
            let Ok(Content::Timeline(mut stream)) = open(timeline.as_bytes()) else { panic!("{timeline}") };
            let mut all = String::new();
            stream.read_to_string(&mut all).unwrap();
            assert_eq!(all, timeline);
        }
        for other in ["[1, 2]", "[[[1, 2]]]", "[[\"a\"]]", "[], 1"] {
            assert!(matches!(open(other.as_bytes()), Err(InputError::NotASnapshot { .. })), "{other}");
        }
    }

    #[test]
    fn what_is_no_snapshot_is_named() {
        let found = |bytes: &[u8]| match read(bytes, Limits::default()) {
            Err(InputError::NotASnapshot { found, .. }) => found,
            other => format!("{other:?}"),
        };
        assert_eq!(found(b"epoch 1 loss 0.3\n"), "text (\"epoch 1 loss 0.3\")");
        assert_eq!(found(&packed(b"hello")), "text (\"hello\") inside zstd");
        assert_eq!(found(b"PK\x03\x04...."), "a zip archive");
        assert_eq!(found(br#"{ "schemaVersion": 1 }"#), "JSON or other text");
        assert_eq!(found(b"[[[1, 2]]]"), "JSON or other text");
        assert!(matches!(read(b"", Limits::default()), Err(InputError::Empty { .. })));
        assert!(matches!(
            read(b"<html></html>", Limits::default()),
            Err(InputError::PageWithoutSnapshot { .. })
        ));
    }
}
