//! The little of HTTP/1.1 that a CLI needs from a server: reads requests whole, writes plain and chunked answers.
//! It never speaks to anything but the socket it is given, and knows nothing of messages.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

/// No request of a test comes near; beyond it the client is broken.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request as read from the wire; header names in lower case.
pub(super) struct RawRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// The next request of a connection; `None` when the client closed it between two requests.
pub(super) fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<RawRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(invalid(&format!("no request line: {line:?}")));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let headers = read_headers(reader)?;
    let value = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, v)| v.as_str());
    if value("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue")) {
        let mut stream = *reader.get_ref();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if value("transfer-encoding").is_some_and(|v| v.contains("chunked")) {
        read_chunks(reader)?
    } else {
        let length = value("content-length").map_or(Ok(0), str::parse::<usize>);
        read_exactly(reader, length.map_err(|_| invalid("content-length is no number"))?)?
    };
    Ok(Some(RawRequest { method, path, headers, body }))
}

fn read_headers(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(invalid("the request ends in its headers"));
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(headers);
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

fn read_chunks(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(digits, 16).map_err(|_| invalid("bad chunk size"))?;
        body.extend(read_exactly(reader, size)?);
        let mut end = String::new();
        reader.read_line(&mut end)?;
        if size == 0 {
            return Ok(body);
        }
        if body.len() > MAX_BODY_BYTES {
            return Err(invalid("the request is too large"));
        }
    }
}

fn read_exactly(reader: &mut BufReader<&TcpStream>, size: usize) -> io::Result<Vec<u8>> {
    if size > MAX_BODY_BYTES {
        return Err(invalid("the request is too large"));
    }
    let mut bytes = vec![0; size];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The answering side of one connection.
pub(super) struct Responder<'a>(pub(super) &'a TcpStream);

impl Responder<'_> {
    /// Status line and headers; `length` `None` starts a chunked body.
    pub(super) fn head(
        &mut self,
        status: u16,
        content_type: &str,
        length: Option<usize>,
        extra: &[(String, String)],
    ) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {status} Mock\r\ncontent-type: {content_type}\r\n");
        match length {
            Some(bytes) => head.push_str(&format!("content-length: {bytes}\r\n")),
            None => head.push_str("transfer-encoding: chunked\r\n"),
        }
        for (name, value) in extra {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.0.write_all(head.as_bytes())
    }

    /// A whole answer with a JSON body; `HEAD` gets no body.
    pub(super) fn json(
        &mut self,
        method: &str,
        status: u16,
        extra: &[(String, String)],
        body: &serde_json::Value,
    ) -> io::Result<()> {
        let body = body.to_string();
        self.head(status, "application/json", Some(body.len()), extra)?;
        if method == "HEAD" {
            return Ok(());
        }
        self.0.write_all(body.as_bytes())
    }

    /// One server-sent event, as one chunk.
    pub(super) fn event(&mut self, name: &str, data: &serde_json::Value) -> io::Result<()> {
        let text = format!("event: {name}\ndata: {data}\n\n");
        self.0.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// The end of a chunked body.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n")
    }

    /// Closes both directions in an orderly way.
    pub(super) fn close(&self) {
        // the client may have left first; then there is nothing to close
        self.0.shutdown(Shutdown::Both).ok();
    }

    /// Makes the coming close a reset.
    #[expect(unsafe_code, reason = "SO_LINGER has no stable safe call in the standard library")]
    pub(super) fn reset_on_close(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let size = size_of::<libc::linger>() as libc::socklen_t;
        // SAFETY: the descriptor is open (borrowed), and the option's value lives for the whole call
        let done = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether the client has closed its side; it sends nothing while it waits for an answer.
    pub(super) fn client_left(&self) -> bool {
        let mut byte = [0];
        if self.0.set_nonblocking(true).is_err() {
            return true;
        }
        let seen = self.0.peek(&mut byte);
        let restored = self.0.set_nonblocking(false);
        match seen {
            Ok(bytes) => bytes == 0 || restored.is_err(),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock || restored.is_err(),
        }
    }
}
