//! Cuts one secret out of a stream of bytes, however the stream is cut into pieces.

use super::Secret;
use crate::supervise::logs;

/// What stands where the secret stood.
const CUT: &[u8] = b"[cut]";
/// A shorter one could be a word of the protocol, and is nobody's key.
const SECRET_MIN: usize = 16;

/// Cuts a secret out of the lines of JSON that a child prints.
pub(in crate::supervise) struct Cut {
    /// As it stands inside of a JSON string.
    secret: Vec<u8>,
    /// The end of what came so far, if the secret may begin there. No line ends inside of a secret, so
    /// that a whole line is never held back.
    tail: Vec<u8>,
}

impl Cut {
    /// For this secret, unless it is too short to be one.
    pub(in crate::supervise) fn of(secret: &Secret) -> Option<Cut> {
        let secret = logs::quoted(secret.expose())?.into_bytes();
        (secret.len() >= SECRET_MIN).then_some(Cut { secret, tail: Vec::new() })
    }

    /// What may be passed on after these bytes.
    pub(in crate::supervise) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.tail);
        all.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(all.len());
        let mut rest = all.as_slice();
        while let Some(first) = self.secret.first()
            && let Some(at) = rest.iter().position(|byte| byte == first)
        {
            let (before, from) = rest.split_at(at);
            out.extend_from_slice(before);
            if let Some(after) = from.strip_prefix(self.secret.as_slice()) {
                out.extend_from_slice(CUT);
                rest = after;
            } else if self.secret.starts_with(from) {
                self.tail = from.to_vec();
                return out;
            } else {
                out.extend_from_slice(&from[..1]);
                rest = &from[1..];
            }
        }
        out.extend_from_slice(rest);
        out
    }

    /// What was held back, once nothing more comes.
    pub(in crate::supervise) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]], secret: &str) -> String {
        let mut cut = Cut::of(&Secret::new(secret).unwrap()).unwrap();
        let mut out: Vec<u8> = pieces.iter().flat_map(|piece| cut.pass(piece)).collect();
        out.extend(cut.finish());
        String::from_utf8(out).unwrap()
    }

    // proves: A-32
    #[test]
    fn a_secret_is_cut_wherever_the_pieces_end() {
        let secret = "sk-sk-0123456789-x";
        let text = format!("{{\"a\":\"{secret}\",\"b\":\"sk-{secret}{secret} sk-sk-0\"}}\n");
        let clean = "{\"a\":\"[cut]\",\"b\":\"sk-[cut][cut] sk-sk-0\"}\n";
        for at in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            assert_eq!(cut(&[one, two], secret), clean, "{at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(cut(&bytes, secret), clean);
    }

    // proves: A-32
    #[test]
    fn a_secret_with_quotes_is_cut_as_json_writes_it() {
        let secret = r#"a"b\c-0123456789-x"#;
        let line = serde_json::json!({ "text": format!("it is {secret}.") }).to_string();
        assert_eq!(cut(&[line.as_bytes()], secret), r#"{"text":"it is [cut]."}"#);
    }

    #[test]
    fn a_whole_line_is_never_held_back_and_a_word_is_no_secret() {
        let mut cut = Cut::of(&Secret::new("}}}}-0123456789-x").unwrap()).unwrap();
        assert_eq!(cut.pass(b"{\"a\":{}}\n"), b"{\"a\":{}}\n");
        assert!(cut.finish().is_empty());
        assert!(Cut::of(&Secret::new("assistant").unwrap()).is_none());
    }
}
