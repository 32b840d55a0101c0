//! A JSON text with the places of what it says, so that one part of it can be changed and the rest
//! keeps its bytes.

use crate::kubernetes_object::paths::append_field_name;
use railwright_base::Reason;
use railwright_base::json_pointer::unescape_step;
use serde_json::Value;
use std::ops::Range;

/// A text that is one JSON map.
pub struct JsonTextDocument<'t> {
    text: &'t str,
    root: Range<usize>,
}

/// What a pointer leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTextPart {
    /// A value, by its bytes.
    Value(Range<usize>),
    /// Nothing: the last map on the way, and the names from there on.
    Missing {
        map: Range<usize>,
        names: Vec<String>,
    },
}

/// One member of a map, or one element of a list.
pub struct JsonTextItem {
    /// The member's name; empty for an element.
    pub name: String,
    /// From its name on.
    start: usize,
    /// The bytes of its value.
    pub value: Range<usize>,
}

/// What a JSON text consists of, where it is a map or a list.
pub enum Items<'t> {
    /// Names and values.
    Map(Vec<(String, &'t str)>),
    /// Elements.
    List(Vec<&'t str>),
}

impl<'t> Items<'t> {
    /// Of a text that is one JSON value, without space around it.
    pub fn of(text: &'t str) -> Option<Self> {
        let document = JsonTextDocument {
            text,
            root: 0..text.len(),
        };
        if let Some(members) = document.items(&document.root, b'{') {
            let members = members.into_iter();
            let members = members.map(|member| (member.name, document.slice(&member.value)));
            return Some(Items::Map(members.collect()));
        }
        let elements = document.items(&document.root, b'[')?;
        let elements = elements.iter().map(|item| document.slice(&item.value));
        Some(Items::List(elements.collect()))
    }
}

impl JsonTextPart {
    /// Where a value put in brings maps of its own: the outermost of them.
    pub fn outermost(&self, pointer: &str) -> Option<String> {
        let JsonTextPart::Missing { names, .. } = self else {
            return None;
        };
        let above = names.len().checked_sub(1).filter(|above| *above > 0)?;
        pointer.rsplitn(above + 1, '/').last().map(str::to_owned)
    }
}

impl<'t> JsonTextDocument<'t> {
    /// The text, where it is one JSON map.
    pub fn of(text: &'t str) -> Result<Self, Reason> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("it is no JSON ({error})"))?;
        if !value.is_object() {
            return Err("it is JSON, but no map".into());
        }
        let start = skip_whitespace(text, 0);
        Ok(JsonTextDocument {
            text,
            root: start..end_of(text, start),
        })
    }

    /// What the pointer leads to; why it leads nowhere, where something on the way is no map.
    pub fn part(&self, pointer: &str) -> Result<JsonTextPart, Reason> {
        let names: Vec<String> = pointer.split('/').skip(1).map(unescape_step).collect();
        let mut at = self.root.clone();
        for (depth, name) in names.iter().enumerate() {
            let members = self
                .items(&at, b'{')
                .ok_or_else(|| format!("`{}` is no map", names[..depth].join("/")))?;
            let mut found = members.into_iter().filter(|member| member.name == *name);
            match (found.next(), found.next()) {
                (Some(member), None) => at = member.value,
                (None, _) => {
                    return Ok(JsonTextPart::Missing {
                        map: at,
                        names: names[depth..].to_vec(),
                    });
                }
                (Some(_), Some(_)) => {
                    return Err(
                        format!("`{}` stands there twice", names[..=depth].join("/")).into(),
                    );
                }
            }
        }
        Ok(JsonTextPart::Value(at))
    }

    /// The bytes of a value.
    pub fn bytes(&self, at: &Range<usize>) -> &'t str {
        self.slice(at)
    }

    /// The members of a map (`{`) or the elements of a list (`[`); nothing where it is none.
    pub fn items(&self, at: &Range<usize>, open: u8) -> Option<Vec<JsonTextItem>> {
        let bytes = self.text.as_bytes();
        if bytes.get(at.start) != Some(&open) {
            return None;
        }
        let mut items = Vec::new();
        let mut now = skip_whitespace(self.text, at.start + 1);
        while now < at.end && !matches!(bytes.get(now), None | Some(b'}' | b']')) {
            let (start, mut name) = (now, String::new());
            if open == b'{' {
                let end = end_of(self.text, now);
                name = serde_json::from_str(self.slice(&(now..end))).ok()?;
                now = skip_whitespace(self.text, skip_whitespace(self.text, end) + 1);
            }
            let value = now..end_of(self.text, now);
            now = skip_whitespace(self.text, value.end);
            items.push(JsonTextItem { name, start, value });
            if bytes.get(now) == Some(&b',') {
                now = skip_whitespace(self.text, now + 1);
            }
        }
        Some(items)
    }

    /// The text with other bytes in this place.
    pub fn with(&self, at: &Range<usize>, new: &str) -> String {
        format!(
            "{}{new}{}",
            self.slice(&(0..at.start)),
            self.slice(&(at.end..self.text.len()))
        )
    }

    /// The text with one more member in a map, whose value is this JSON; further names make maps of
    /// their own.
    pub fn with_member(&self, map: &Range<usize>, names: &[String], value: &str) -> String {
        let Some((first, rest)) = names.split_first() else {
            return self.text.to_owned();
        };
        let inner = rest.iter().rev().fold(value.to_owned(), |inner, name| {
            format!("{{{}:{inner}}}", Value::from(name.as_str()))
        });
        let items = self.items(map, b'{').unwrap_or_default();
        // A colon as the neighbours have it.
        let colon = items.last().map_or(":", |last| {
            let name_end = end_of(self.text, last.start);
            self.slice(&(name_end..last.value.start))
        });
        let member = format!("{}{colon}{inner}", Value::from(first.as_str()));
        self.with_item(map, &items, &member)
    }

    /// The text with one more element at the end of a list.
    pub fn with_element(&self, list: &Range<usize>, element: &Value) -> String {
        self.with_item(
            list,
            &self.items(list, b'[').unwrap_or_default(),
            &element.to_string(),
        )
    }

    fn with_item(&self, at: &Range<usize>, items: &[JsonTextItem], new: &str) -> String {
        let Some(last) = items.last() else {
            let inside = at.start + 1..at.end.saturating_sub(1);
            return self.with(&inside, new);
        };
        let before = self.slice(&(at.start + 1..last.start));
        let indent = &before[before.trim_end().len()..];
        self.with(
            &(last.value.end..last.value.end),
            &format!(",{indent}{new}"),
        )
    }

    /// The text without this one of the items of a map or list.
    pub fn without_item(&self, at: &Range<usize>, items: &[JsonTextItem], index: usize) -> String {
        let before = index.checked_sub(1).and_then(|index| items.get(index));
        match (before, items.get(index), items.get(index + 1)) {
            (_, None, _) => self.text.to_owned(),
            (None, Some(_), None) => self.with(&(at.start + 1..at.end.saturating_sub(1)), ""),
            (None, Some(item), Some(next)) => self.with(&(item.start..next.start), ""),
            (Some(before), Some(item), _) => self.with(&(before.value.end..item.value.end), ""),
        }
    }

    /// The text without the member that a pointer leads to.
    pub fn without_member(&self, pointer: &str) -> Result<String, Reason> {
        let (above, last) = pointer.rsplit_once('/').unwrap_or_default();
        let JsonTextPart::Value(map) = self.part(above)? else {
            return Ok(self.text.to_owned());
        };
        let (items, last) = (
            self.items(&map, b'{').unwrap_or_default(),
            unescape_step(last),
        );
        let index = items.iter().position(|item| item.name == last);
        Ok(index.map_or_else(
            || self.text.to_owned(),
            |index| self.without_item(&map, &items, index),
        ))
    }

    fn slice(&self, at: &Range<usize>) -> &'t str {
        self.text.get(at.clone()).unwrap_or_default()
    }
}

/// A pointer for people: `eni_tag_filter.creator`, and `tags."a.b"`.
pub fn format_json_pointer(pointer: &str) -> String {
    pointer
        .split('/')
        .skip(1)
        .map(unescape_step)
        .fold(String::new(), |path, name| append_field_name(path, &name))
}

/// The first byte from here on that is no white space.
fn skip_whitespace(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        .count()
}

/// Where the value that begins here ends; the text is JSON.
fn end_of(text: &str, from: usize) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for (n, byte) in text.as_bytes().iter().enumerate().skip(from) {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') if depth == 0 => return n + 1,
            (true, b'"') => in_text = false,
            (true, _) => {}
            (false, b'"') => in_text = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth == 0 => return n,
            (false, b'}' | b']') if depth == 1 => return n + 1,
            (false, b'}' | b']') => depth -= 1,
            (false, b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') if depth == 0 => return n,
            (false, _) => {}
        }
    }
    text.len()
}
