//! The filters and tests of templates: Tera's own, bounded where they make text longer, and ours
//! for words of shells, units and versions.

use super::output_limit;
use railwright_base::secret;
use tera::{Kwargs, State, Tera, TeraResult};

/// The filter that we wrap a lone expression in, to get its value with its type.
pub const VALUE_FILTER: &str = "_value";

/// Puts them in the place of Tera's.
pub fn register_filters(tera: &mut Tera) {
    tera.register_filter(VALUE_FILTER, format_json);
    tera.register_filter("json", |value: tera::Value, more: Kwargs, state: &State| {
        without_secret(&value)?;
        format_json(value, more, state)
    });
    tera.register_filter("sh", quote_shell_word);
    tera.register_filter("systemd", quote_systemd_word);
    tera.register_filter("replace", output_limit::replace_in_text);
    tera.register_filter("join", output_limit::join_list_items);
    tera.register_filter("indent", output_limit::indent_text);
    tera.register_test("version_before", version_before);
    tera.register_test("whole_number", whole_number);
}

fn check_defined(value: &tera::Value) -> TeraResult<()> {
    if value.is_undefined() {
        Err(tera::Error::message("the value is not there"))
    } else {
        Ok(())
    }
}

/// What is written between quotes needs escapes, and a secret is filled in only after the filter
/// has run.
fn without_secret(value: &tera::Value) -> TeraResult<()> {
    match secret::find_mark_character(&value.to_string()) {
        None => Ok(()),
        Some(_) => Err(tera::Error::message(
            "a secret cannot go through this filter: it is filled in later, as it is",
        )),
    }
}

fn format_json(value: tera::Value, _: Kwargs, _: &State) -> TeraResult<String> {
    check_defined(&value)?;
    output_limit::limit_text_length(
        serde_json::to_string(&value).map_err(|error| tera::Error::message(error.to_string()))?,
    )
}

fn quote_shell_word(value: tera::Value, _: Kwargs, _: &State) -> TeraResult<String> {
    check_defined(&value)?;
    output_limit::limit_text_length(secret::shell_word(&value.to_string()))
}

/// `5.4 is version_before(than="5.12")`: part by part as numbers; what is no number at the end of a
/// part (`5.15-generic`) is left out.
fn version_before(value: tera::Value, more: Kwargs, _: &State) -> TeraResult<bool> {
    check_defined(&value)?;
    let than: String = more.must_get("than")?;
    Ok(
        railwright_base::version::parse_version_numbers(&value.to_string())
            < railwright_base::version::parse_version_numbers(&than),
    )
}

/// `"22" is whole_number`: what `int` can turn into a number.
fn whole_number(value: tera::Value, _: Kwargs, _: &State) -> TeraResult<bool> {
    check_defined(&value)?;
    Ok(value.to_string().trim().parse::<i64>().is_ok())
}

/// One word of an `Exec` line of a systemd unit (systemd.service(5), systemd.unit(5)): `%` and `$`
/// doubled, C escapes.
fn quote_systemd_word(value: tera::Value, _: Kwargs, _: &State) -> TeraResult<String> {
    check_defined(&value)?;
    without_secret(&value)?;
    let mut out = String::from("\"");
    for c in value.to_string().chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' | '$' => out.extend([c, c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    output_limit::limit_text_length(out)
}
