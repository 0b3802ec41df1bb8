//! Bytes to lines, with a bound on what one line may hold. Never looks at what a line says.

use alloc::vec::Vec;

/// What is kept of a line that is too long, in bytes: enough to read its type and subtype.
pub(super) const HEAD_BYTES: usize = 4096;

/// Bytes that [`find`] looks at at once.
const RUN_BYTES: usize = 64;

/// One line without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// The beginning of a line longer than the limit, at most [`HEAD_BYTES`].
    Head(&'a [u8]),
}

/// Where the first such byte stands. Looks at a run of bytes at once, which takes a fraction of the time
/// that one after the other takes.
pub(super) fn find(bytes: &[u8], is: impl Fn(u8) -> bool) -> Option<usize> {
    let mut runs = bytes.chunks(RUN_BYTES);
    let at = runs.position(|run| run.iter().fold(false, |any, byte| any | is(*byte)))? * RUN_BYTES;
    bytes.iter().skip(at).position(|byte| is(*byte)).map(|within| at + within)
}

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub(super) struct Splitter {
    max: usize,
    held: Vec<u8>,
    too_long: bool,
}

impl Splitter {
    /// Lines may be `max` bytes long.
    pub(super) fn new(max: usize) -> Self {
        Splitter { max, held: Vec::new(), too_long: false }
    }

    /// Hands every line that these bytes complete to `take`.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(at) = find(rest, |byte| byte == b'\n') {
            let (line, after) = rest.split_at(at);
            if self.held.is_empty() && line.len() <= self.max {
                // it came at once: no need to hold it
                take(Line::Whole(line));
            } else {
                self.hold(line);
                self.flush(&mut take);
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.hold(rest);
    }

    /// Hands over what stands after the last newline, if anything does.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.held.is_empty() {
            self.flush(&mut take);
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        // rule: A-01
        self.too_long |= self.held.len() + bytes.len() > self.max;
        let room = if self.too_long { HEAD_BYTES.min(self.max) } else { self.max };
        self.held.truncate(room);
        let free = room - self.held.len();
        self.held.extend_from_slice(bytes.get(..free).unwrap_or(bytes));
    }

    fn flush(&mut self, take: &mut impl FnMut(Line<'_>)) {
        take(if self.too_long { Line::Head(&self.held) } else { Line::Whole(&self.held) });
        self.held.clear();
        // a single huge line must not keep its memory for the life of the child
        self.held.shrink_to(64 * 1024);
        self.too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn lines(max: usize, reads: &[&[u8]]) -> Vec<(bool, Vec<u8>)> {
        let mut splitter = Splitter::new(max);
        let mut all = Vec::new();
        let mut take = |line: Line<'_>| match line {
            Line::Whole(bytes) => all.push((true, bytes.to_vec())),
            Line::Head(bytes) => all.push((false, bytes.to_vec())),
        };
        for read in reads {
            splitter.push(read, &mut take);
        }
        splitter.finish(&mut take);
        all
    }

    #[test]
    fn a_line_is_whole_up_to_the_limit_and_a_head_beyond_it() {
        assert_eq!(
            lines(4, &[b"abcd\nabcde\n", b"ab", b"\nlast"]),
            [
                (true, b"abcd".to_vec()),
                (false, b"abcd".to_vec()),
                (true, b"ab".to_vec()),
                (true, b"last".to_vec())
            ]
        );
    }

    // proves: A-01
    #[test]
    fn an_endless_line_holds_no_more_than_its_head() {
        let mut splitter = Splitter::new(64 * 1024);
        let chunk = vec![b'x'; 8 * 1024];
        for _ in 0..64 {
            splitter.push(&chunk, |_| panic!("no newline has come"));
            assert!(splitter.held.len() <= 64 * 1024);
        }
        assert_eq!(splitter.held.len(), HEAD_BYTES);
        let mut seen = Vec::new();
        splitter.push(b"\nnext\n", |line| match line {
            Line::Whole(bytes) => seen.push(bytes.to_vec()),
            Line::Head(bytes) => seen.push(vec![bytes[0]]),
        });
        assert_eq!(seen, [b"x".to_vec(), b"next".to_vec()]);
    }
}
