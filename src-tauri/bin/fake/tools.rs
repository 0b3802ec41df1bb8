//! Tool calls: the call itself, the question for consent, the result. No tool does anything real, apart from
//! the `sleep` of Bash.

use crate::clock::Stopwatch;
use crate::control::Signal;
use crate::protocol::HOST;
use crate::turn::{Cut, Turn};
use crate::{ids, limits, process};
use serde_json::{Value, json};

const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file \
                        edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

/// What the operator, or a rule, said to a tool call.
enum Consent {
    /// Run it with this input.
    Allowed(Value),
    /// A tool result with this error text was written.
    Denied,
}

impl Turn<'_> {
    /// A tool call that does nothing.
    pub(crate) fn tool(&mut self, name: &str, input: &Value, ask: bool) -> Result<(), Cut> {
        let id = ids::tagged("toolu");
        self.call(&id, name, input);
        if let Consent::Allowed(input) = self.consent(&id, name, input, ask, false)? {
            let file = input["file_path"].as_str();
            let text = match file {
                Some(file) => format!("{name} on {file} accepted (rehearsal: nothing was written)"),
                None => format!("{name} done (rehearsal: nothing was run)"),
            };
            self.tool_result(&id, &text, json!({"filePath": file, "rehearsal": true}));
        }
        Ok(())
    }

    /// A tool of the host's, asked for and called over this stream.
    pub(crate) fn host_tool(&mut self, name: &str, input: &Value) -> Result<(), Cut> {
        let id = ids::tagged("toolu");
        let full = format!("mcp__{HOST}__{name}");
        self.call(&id, &full, input);
        if !self.session.hosted {
            let why =
                format!("<tool_use_error>Error: No such tool available: {full}</tool_use_error>");
            self.failed_result(&id, &why, json!({}));
            return Ok(());
        }
        let Consent::Allowed(input) = self.consent(&id, &full, input, true, false)? else {
            return Ok(());
        };
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": input}});
        let request = json!({"subtype": "mcp_message", "server_name": HOST, "message": message});
        let answer = self.request_host(&id, &full, &input, &request)?;
        let answer = &answer["response"]["mcp_response"];
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.or(answer["error"]["message"].as_str()).unwrap_or_default().to_owned();
        self.heard.clone_from(&text);
        if answer["result"]["isError"] == false {
            self.tool_result(&id, &text, json!([{"type": "text", "text": text}]));
        } else {
            self.failed_result(&id, &text, json!({}));
        }
        Ok(())
    }

    /// AskUserQuestion.
    pub(crate) fn question(&mut self, input: &Value) -> Result<(), Cut> {
        let ready_made = json!({"questions": [{"question": "Which colour do you like best?", "header": "Colour",
            "multiSelect": false, "options": [{"label": "Green", "description": "like moss"},
                                              {"label": "Blue", "description": "like the sea"}]}]});
        let input = if input["questions"].is_array() { input } else { &ready_made };
        let id = ids::tagged("toolu");
        self.call(&id, "AskUserQuestion", input);
        if let Consent::Allowed(answered) =
            self.consent(&id, "AskUserQuestion", input, true, true)?
        {
            let answers = answered["answers"].as_object().cloned().unwrap_or_default();
            let plain = |answer: &Value| match (answer.as_str(), answer.as_array()) {
                (Some(text), _) => text.to_owned(),
                (None, Some(list)) => {
                    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
                }
                (None, None) => answer.to_string(),
            };
            self.heard = answers.values().map(plain).collect::<Vec<_>>().join(", ");
            let pairs: Vec<String> = answers
                .iter()
                .map(|(question, answer)| format!("\"{question}\"=\"{}\"", plain(answer)))
                .collect();
            let text = if pairs.is_empty() {
                self.heard = "no answer".to_owned();
                "The user did not answer the questions.".to_owned()
            } else {
                format!(
                    "Your questions have been answered: {}. You can now continue with these answers in mind.",
                    pairs.join(", ")
                )
            };
            self.tool_result(
                &id,
                &text,
                json!({"questions": input["questions"], "answers": answers}),
            );
        }
        Ok(())
    }

    /// ExitPlanMode.
    pub(crate) fn exit_plan(&mut self, text: &str) -> Result<(), Cut> {
        let text = if text.is_empty() {
            "1. Look at the folder\n2. Change one file\n3. Run the tests"
        } else {
            text
        };
        let input = json!({"plan": text});
        let id = ids::tagged("toolu");
        self.call(&id, "ExitPlanMode", &input);
        if let Consent::Allowed(_) = self.consent(&id, "ExitPlanMode", &input, true, true)? {
            "approved".clone_into(&mut self.heard);
            self.session.change_mode("default");
            self.tool_result(
                &id,
                "User has approved exiting plan mode. You can now proceed.",
                json!({"plan": text, "isAgent": false}),
            );
        }
        Ok(())
    }

    /// Bash with a real `sleep`.
    pub(crate) fn bash(&mut self, seconds: u64, ask: bool) -> Result<(), Cut> {
        let input = json!({"command": format!("sleep {seconds}"), "description": "Wait"});
        let id = ids::tagged("toolu");
        self.call(&id, "Bash", &input);
        if let Consent::Denied = self.consent(&id, "Bash", &input, ask, false)? {
            return Ok(());
        }
        let mut child = match process::spawn_sleep(seconds, &self.session.id) {
            Ok(child) => child,
            Err(error) => {
                self.failed_result(&id, &format!("Error: cannot start: {error}"), json!({}));
                return Ok(());
            }
        };
        let (clock, mut beats, mut task) = (Stopwatch::start(), 0_u32, None);
        while !matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            if self.session.pause(limits::TOOL_POLL).is_err() {
                process::end(&mut child);
                return Err(self.rejected(&id));
            }
            if task.is_none() && clock.elapsed() >= limits::TASK_STARTED_AFTER {
                let name = ids::tagged("b");
                self.session.out.emit(json!({"type": "system", "subtype": "task_started", "task_id": name,
                    "tool_use_id": id, "description": "Wait", "is_backgrounded": false, "task_type": "local_bash"}));
                task = Some(name);
            }
            if clock.elapsed() >= limits::HEARTBEAT * (beats + 1) {
                self.session.out.emit(json!({"type": "tool_progress", "tool_use_id": format!("{id}-heartbeat-{beats}"),
                    "tool_name": "Bash", "parent_tool_use_id": id,
                    "elapsed_time_seconds": clock.elapsed().as_secs(), "heartbeat": true}));
                beats += 1;
            }
        }
        if let Some(task) = task {
            self.session
                .out
                .emit(json!({"type": "system", "subtype": "task_notification", "task_id": task,
                "tool_use_id": id, "status": "completed", "output_file": "", "summary": "Wait"}));
        }
        self.tool_result(
            &id,
            "(Bash completed with no output)",
            json!({"stdout": "", "stderr": "", "interrupted": false}),
        );
        Ok(())
    }

    /// Asks the host where consent is needed. `always` = the call is a question itself, so that no mode skips it.
    fn consent(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        ask: bool,
        always: bool,
    ) -> Result<Consent, Cut> {
        let edit = matches!(name, "Write" | "Edit");
        let by_mode = match self.session.mode.as_str() {
            "bypassPermissions" => true,
            "acceptEdits" => edit,
            _asks => false,
        };
        if !ask || (by_mode && !always) {
            return Ok(Consent::Allowed(input.clone()));
        }
        if !self.session.args.asks_host || (self.session.mode == "dontAsk" && !always) {
            let why = format!(
                "Claude requested permissions to use {name}, but you haven't granted it yet."
            );
            self.session
                .out
                .emit(json!({"type": "system", "subtype": "permission_denied", "tool_name": name,
                "tool_use_id": id, "message": why}));
            return Ok(self.denied(id, name, input, &why));
        }
        let response = self.ask_host(id, name, input, always)?;
        if response["subtype"] == "error" {
            let why = format!(
                "Tool permission request failed: Error: {}",
                response["error"].as_str().unwrap_or_default()
            );
            return Ok(self.denied(id, name, input, &why));
        }
        let verdict = &response["response"];
        if verdict["behavior"] == "allow" {
            "allowed".clone_into(&mut self.heard);
            for update in verdict["updatedPermissions"].as_array().into_iter().flatten() {
                if let (true, Some(mode)) = (update["type"] == "setMode", update["mode"].as_str()) {
                    self.session.change_mode(mode);
                }
            }
            // a question that comes back without its answers was not answered
            let updated =
                if verdict["updatedInput"].is_object() { &verdict["updatedInput"] } else { input };
            return Ok(Consent::Allowed(updated.clone()));
        }
        let why = verdict["message"].as_str().unwrap_or("denied").to_owned();
        if verdict["interrupt"] == true {
            self.deny(name, id, input);
            return Err(self.rejected(id));
        }
        Ok(self.denied(id, name, input, &why))
    }

    fn ask_host(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        always: bool,
    ) -> Result<Value, Cut> {
        let mut request = json!({"subtype": "can_use_tool", "tool_name": name, "display_name": name, "input": input,
            "tool_use_id": id});
        if always {
            request["requires_user_interaction"] = true.into();
        } else {
            let subject = input["file_path"].as_str().or(input["command"].as_str()).unwrap_or(name);
            request["description"] = subject.rsplit('/').next().unwrap_or(subject).into();
            request["permission_suggestions"] =
                json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        }
        if name.starts_with(&format!("mcp__{HOST}__")) {
            request["mcp_server"] = json!({"name": HOST, "source": "sdk"});
        }
        self.session.state("requires_action");
        let answer = self.request_host(id, name, input, &request)?;
        self.session.state("running");
        Ok(answer)
    }

    /// Sends the host a request for this call, and waits for its answer.
    fn request_host(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        request: &Value,
    ) -> Result<Value, Cut> {
        let request_id = ids::uuid();
        self.session.pending = Some(request_id.clone());
        self.session.out.emit_bare(
            &json!({"type": "control_request", "request_id": request_id, "request": request}),
        );
        loop {
            match self.session.wait() {
                Signal::Interrupt => {
                    self.deny(name, id, input);
                    return Err(self.rejected(id));
                }
                Signal::Answer(response) if response["request_id"] == request_id.as_str() => {
                    self.session.pending = None;
                    return Ok(response);
                }
                // an answer to a question that was withdrawn
                Signal::Answer(_) => {}
            }
        }
    }

    /// Remembers the denial for `result.permission_denials`.
    fn deny(&mut self, name: &str, id: &str, input: &Value) {
        self.denials.push(json!({"tool_name": name, "tool_use_id": id, "tool_input": input}));
    }

    fn denied(&mut self, id: &str, name: &str, input: &Value, why: &str) -> Consent {
        self.heard = format!("denied: {why}");
        self.deny(name, id, input);
        self.failed_result(id, why, json!({"non_execution_kind": "permission-rule"}));
        Consent::Denied
    }

    /// The tool's end at an interrupt.
    fn rejected(&mut self, id: &str) -> Cut {
        self.note_tool(
            id,
            REJECTED,
            true,
            json!("User rejected tool use"),
            json!({"non_execution_kind": "user-rejected"}),
        );
        Cut::Tools
    }

    pub(crate) fn tool_result(&mut self, id: &str, text: &str, details: Value) {
        self.note_tool(
            id,
            text,
            false,
            details,
            json!({"permission_decision": {"decision": "accept"}}),
        );
        self.requesting();
    }

    pub(crate) fn failed_result(&mut self, id: &str, text: &str, meta: Value) {
        self.note_tool(id, text, true, json!(format!("Error: {text}")), meta);
        self.requesting();
    }

    fn note_tool(&mut self, id: &str, text: &str, is_error: bool, details: Value, mut meta: Value) {
        meta["id"] = id.into();
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]);
        self.note_user(
            &content,
            false,
            json!({"tool_use_result": details, "tool_result_meta": [meta]}),
        );
    }
}
