//! The JSON-RPC of eAPI: `runCmds` with commands of the CLI, whose output comes as text. A request
//! fails as a whole with its first command that does; those before it have been run. Numbers and
//! words of errors: pyeapi (test/system/test_client.py, arista-eosplus/pyeapi#128): 1002 for a
//! command that there is not, or not for this user, 1003 for one without JSON, 1004 for one that
//! eAPI does not run, 1000 for all else.

use railwright_base::bounded_json;
use railwright_base::text::one_line;
use serde::Deserialize;
use serde_json::{Value, json};

/// Where eAPI is served.
pub const PATH: &str = "/command-api";

/// A request that runs these commands.
pub fn build_run_commands_request(commands: &[String]) -> String {
    let parameters = json!({ "version": 1, "cmds": commands, "format": "text" });
    json!({ "jsonrpc": "2.0", "method": "runCmds", "params": parameters, "id": "railwright" })
        .to_string()
}

/// Why a request failed.
#[derive(Debug, PartialEq, Eq)]
pub struct EapiRefusal {
    /// How many commands were run before the one that failed.
    pub before: usize,
    /// What is said of it, in one line, without the command.
    pub reason: String,
}

#[derive(Deserialize)]
struct EapiResponse {
    #[serde(default)]
    result: Option<Vec<Value>>,
    #[serde(default)]
    error: Option<EapiErrorBody>,
}

#[derive(Deserialize)]
struct EapiErrorBody {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

/// The output of each of these commands.
pub fn parse_command_outputs(body: &[u8], commands: &[String]) -> Result<Vec<String>, EapiRefusal> {
    let Some(document) = bounded_json::parse_bounded_json(body) else {
        return Err(refuse_foreign_answer("no JSON, or too many values"));
    };
    let answer: EapiResponse = serde_json::from_value(document)
        .map_err(|error| refuse_foreign_answer(&one_line(&error.to_string(), 80)))?;
    match answer {
        EapiResponse {
            error: Some(problem),
            ..
        } => Err(refusal_from_problem(&problem, commands)),
        EapiResponse {
            result: Some(results),
            ..
        } if results.len() == commands.len() => Ok(results.iter().map(find_output_text).collect()),
        EapiResponse {
            result: Some(results),
            ..
        } => Err(refuse_foreign_answer(&format!(
            "{} results for {} commands",
            results.len(),
            commands.len()
        ))),
        EapiResponse { .. } => Err(refuse_foreign_answer("neither a result nor an error")),
    }
}

fn refuse_foreign_answer(what: &str) -> EapiRefusal {
    EapiRefusal {
        before: 0,
        reason: format!("what answers there is no eAPI: {what}"),
    }
}

fn find_output_text(result: &Value) -> String {
    result
        .get("output")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Of the command itself only its first word is left in what is said: it is a script of ours, and
/// long.
fn refusal_from_problem(problem: &EapiErrorBody, commands: &[String]) -> EapiRefusal {
    let data = match &problem.data {
        Value::Array(data) => data.as_slice(),
        _ => &[],
    };
    let before = data.len().saturating_sub(1);
    let mut errors = Vec::new();
    if let Some(Value::Array(all)) = data.last().and_then(|last| last.get("errors")) {
        errors.extend(all.iter().filter_map(Value::as_str));
    }
    let what = match problem.message.rsplit_once("' failed: ") {
        Some((_, what)) => what,
        None => problem.message.as_str(),
    };
    let mut reason = format!("{what} ({})", problem.code);
    if !errors.is_empty() {
        reason = format!("{reason}: {}", errors.join("; "));
    }
    if let Some(command) = commands.get(before) {
        reason = reason.replace(
            command.as_str(),
            command.split(' ').next().unwrap_or_default(),
        );
    }
    EapiRefusal {
        before,
        reason: one_line(&reason, 300),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_told_by_command() {
        let body = br#"{"jsonrpc":"2.0","id":"railwright","result":[{},{"output":"a\nb"}]}"#;
        let two = ["enable".to_owned(), "bash timeout 1 x".to_owned()];
        let many = format!(r#"{{"result":[{}1]}}"#, r#"{"a":1},"#.repeat(500_000));
        assert_eq!(
            parse_command_outputs(body, &two),
            Ok(vec![String::new(), "a\nb".to_owned()])
        );
        for (body, what) in [
            (&b"<html>"[..], "no eAPI: no JSON"),
            (many.as_bytes(), "too many values"),
            (br#"{"result":[{}]}"#, "1 results for 2 commands"),
            (br#"{"id":1}"#, "neither a result nor an error"),
            (br#"[1]"#, "no eAPI"),
        ] {
            let refused = parse_command_outputs(body, &two).unwrap_err();
            assert!(refused.reason.contains(what), "{refused:?}");
        }
    }

    #[test]
    fn a_refusal_is_told_without_the_command() {
        // As printed in arista-eosplus/pyeapi#128.
        let body = json!({ "jsonrpc": "2.0", "id": "1", "error": {
            "code": 1004,
            "message": "CLI command 2 of 2 'bash traceroute 8.8.8.8  -m 255 -w 2' failed: \
                        incompatible command",
            "data": [{}, { "errors": ["Command not permitted via API access. To run a bash command \
                                       over the Command API,  use the 'timeout  <seconds>' \
                                       option."] }],
        }});
        let two = ["enable".to_owned(), "bash traceroute 8.8.8.8".to_owned()];
        let refused = parse_command_outputs(body.to_string().as_bytes(), &two).unwrap_err();
        assert_eq!(refused.before, 1);
        assert!(
            refused
                .reason
                .starts_with("incompatible command (1004): Command not permitted via API access."),
            "{refused:?}"
        );
        assert!(!refused.reason.contains("traceroute"));
        let denied = json!({ "error": { "code": 1002, "data": [{}, { "errors": ["Authorization denied for command 'bash traceroute 8.8.8.8'"] }] } });
        let refused = parse_command_outputs(denied.to_string().as_bytes(), &two).unwrap_err();
        assert_eq!(
            refused.reason,
            "(1002): Authorization denied for command 'bash'"
        );
        let odd =
            parse_command_outputs(br#"{"error":{"data":"?","message":5}}"#, &two).unwrap_err();
        assert!(odd.before == 0 && odd.reason.contains("no eAPI"), "{odd:?}");
    }
}
