//! The command line of the CLI as far as Omniscio uses it (A-18). It reads no environment.

/// The flags of one launch.
#[derive(Debug, Default, Clone)]
pub(crate) struct Args {
    /// `--session-id`: the id of a new session or of a fork.
    pub(crate) session_id: Option<String>,
    /// `--resume`: the session to go on with.
    pub(crate) resume: Option<String>,
    /// `--fork-session`: keep the resumed session as it is and go on in a copy.
    pub(crate) fork: bool,
    /// `--resume-session-at`: cut the history after this message.
    pub(crate) resume_at: Option<String>,
    /// `--model`.
    pub(crate) model: Option<String>,
    /// `--permission-mode`.
    pub(crate) permission_mode: Option<String>,
    /// `--permission-prompt-tool stdio`: consent is asked over the stream; without it, it is refused.
    pub(crate) asks_host: bool,
    /// `--include-partial-messages`: stream events are written.
    pub(crate) partial: bool,
    /// `--replay-user-messages`: accepted messages are echoed.
    pub(crate) replay: bool,
}

/// Reads the flags, or says in the CLI's words what is wrong with them.
pub(crate) fn parse(given: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args::default();
    let (mut print, mut verbose) = (false, false);
    let (mut input, mut output) = (String::new(), String::new());
    let mut given = given;
    while let Some(flag) = given.next() {
        let mut value = || {
            given.next().ok_or_else(|| format!("error: option '{flag} <value>' argument missing"))
        };
        match flag.as_str() {
            "-p" | "--print" => print = true,
            "--verbose" => verbose = true,
            "--include-partial-messages" => args.partial = true,
            "--replay-user-messages" => args.replay = true,
            "--fork-session" => args.fork = true,
            "--dangerously-skip-permissions" => {
                args.permission_mode = Some("bypassPermissions".into())
            }
            "--input-format" => input = value()?,
            "--output-format" => output = value()?,
            "--permission-prompt-tool" => args.asks_host = value()? == "stdio",
            "--session-id" => args.session_id = Some(value()?),
            "-r" | "--resume" => args.resume = Some(value()?),
            "--resume-session-at" => args.resume_at = Some(value()?),
            "--model" => args.model = Some(value()?),
            "--permission-mode" => args.permission_mode = Some(value()?),
            "--append-system-prompt" | "--setting-sources" => drop(value()?),
            unknown => return Err(format!("error: unknown option '{unknown}'")),
        }
    }
    check(&args, print, verbose, &input, &output)?;
    Ok(args)
}

fn check(args: &Args, print: bool, verbose: bool, input: &str, output: &str) -> Result<(), String> {
    if !print || input != "stream-json" || output != "stream-json" {
        return Err("Error: the stand-in speaks only: -p --input-format stream-json --output-format stream-json".into());
    }
    if !verbose {
        return Err(
            "Error: When using --print, --output-format=stream-json requires --verbose".into()
        );
    }
    if let Some(id) = &args.session_id {
        if !crate::ids::is_uuid(id) {
            return Err("Error: Invalid session ID. Must be a valid UUID.".into());
        }
        if args.resume.is_some() && !args.fork {
            return Err("Error: --session-id can only be used with --resume if --fork-session is also specified.".into());
        }
    }
    if let Some(mode) = &args.permission_mode
        && !crate::protocol::MODES.contains(&mode.as_str())
    {
        return Err(format!(
            "error: option '--permission-mode <mode>' argument '{mode}' is invalid."
        ));
    }
    Ok(())
}
