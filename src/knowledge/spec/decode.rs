//! From the arena to plain structs: a serde deserializer that knows where everything stands.
//! Stricter than YAML again: numbers are decimal, bools are `true` and `false`, nothing (`~`, an
//! empty value) is never text.
//!
//! serde stops at the first error. To show all of them, the entry with the error is masked and the
//! value is decoded again, until it decodes or nothing is left to mask; only wrong input pays for
//! that.

mod failure;
mod number;

pub use failure::{DecodeError, DecodeProblem};

use super::yaml::{Entries, NodeId, YamlDocument, YamlNodeKind};
use railwright_base::Diagnostic;
use railwright_base::suggest::find_nearest_word;
use serde::de::{self, DeserializeSeed, IntoDeserializer as _, Visitor};
use std::collections::HashSet;

/// The most errors that are looked for in one value.
const FAILURES_MAX: usize = 100;

/// Decodes the value at `node`, which stands after `key` if it has one. Its errors go to
/// `failures`; a value comes back even then if what is left without the wrong entries decodes, so
/// that its other parts can still be checked.
pub fn decode_value<'a, T: de::Deserialize<'a>>(
    document: &'a YamlDocument,
    key: Option<NodeId>,
    node: NodeId,
    failures: &mut Vec<DecodeError>,
) -> Option<T> {
    let mut mask = HashSet::new();
    loop {
        let error = match T::deserialize(YamlDecoder {
            document,
            node,
            mask: &mask,
        }) {
            Ok(value) => return Some(value),
            Err(error) => error.at(node),
        };
        let error = match key {
            Some(key) => error.under(key),
            None => error,
        };
        let entry = error.entry();
        if !is_consequence(document, &error, &mask) {
            failures.push(error);
        }
        match entry {
            Some(entry) if mask.len() < FAILURES_MAX && mask.insert(entry) => {}
            _ => return None,
        }
    }
}

/// Decodes a value of which nothing may be wrong: what is goes to `problems`, and no value comes
/// back.
pub fn decode_or_report<'a, T: de::Deserialize<'a>>(
    document: &'a YamlDocument,
    node: NodeId,
    problems: &mut Vec<Diagnostic>,
) -> Option<T> {
    let mut failures: Vec<DecodeError> = Vec::new();
    let value = decode_value(document, None, node, &mut failures);
    problems.extend(failures.iter().map(|failure| failure.diagnostic(document)));
    value.filter(|_| failures.is_empty())
}

/// True for a key that is missing only because its wrong value was masked, or because it was
/// mistyped.
fn is_consequence(document: &YamlDocument, error: &DecodeError, mask: &HashSet<NodeId>) -> bool {
    match (error.problem(), error.node()) {
        (DecodeProblem::Missing { key }, Some(mapping)) => {
            let mut masked = document
                .entries(mapping)
                .filter(|entry| mask.contains(&entry.key));
            masked.any(|entry| find_nearest_word(document.text(entry.key), [*key]).is_some())
        }
        _ => false,
    }
}

#[derive(Clone, Copy)]
struct YamlDecoder<'a, 'm> {
    document: &'a YamlDocument,
    node: NodeId,
    mask: &'m HashSet<NodeId>,
}

impl<'a> YamlDecoder<'a, '_> {
    fn text(&self) -> &'a str {
        self.document.text(self.node)
    }

    fn wrong(&self, expected: impl Into<String>) -> DecodeError {
        let problem = match self.found() {
            None => DecodeProblem::Nothing {
                expected: expected.into(),
            },
            Some(found) => DecodeProblem::WrongType {
                found,
                expected: expected.into(),
            },
        };
        self.place(DecodeError::new(problem))
    }

    /// What stands here, in words; nothing for an empty value.
    fn found(&self) -> Option<String> {
        let text = railwright_base::text::one_line(self.text(), 40);
        match self.document.kind(self.node) {
            _ if self.document.is_null(self.node) => None,
            YamlNodeKind::Plain => Some(format!("`{text}`")),
            YamlNodeKind::Quoted => Some(format!("the text \"{text}\"")),
            YamlNodeKind::Sequence => Some("a list".to_owned()),
            YamlNodeKind::Mapping | YamlNodeKind::Alias => Some("a mapping".to_owned()),
        }
    }

    /// Puts an error that has no place yet at this node; one that came through an alias also names
    /// the alias.
    fn place(&self, failure: DecodeError) -> DecodeError {
        let failure = failure.at(self.node);
        if self.document.resolved(self.node) == self.node {
            failure
        } else {
            failure.through(self.node)
        }
    }

    fn scalar(&self, expected: &str) -> Result<&'a str, DecodeError> {
        match self.document.kind(self.node) {
            YamlNodeKind::Plain | YamlNodeKind::Quoted if !self.document.is_null(self.node) => {
                Ok(self.text())
            }
            _ => Err(self.wrong(expected)),
        }
    }

    fn visit_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.document.kind(self.node) != YamlNodeKind::Mapping {
            return Err(self.wrong("a mapping (`key: value`)"));
        }
        let entries = self.document.entries(self.node);
        visitor
            .visit_map(MapAccess {
                decoder: self,
                entries,
                value: None,
            })
            .map_err(|error| self.place(error))
    }

    fn visit_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.document.kind(self.node) != YamlNodeKind::Sequence {
            return Err(self.wrong("a list"));
        }
        let items = self.document.items(self.node);
        visitor
            .visit_seq(SeqAccess {
                decoder: self,
                items,
            })
            .map_err(|error| self.place(error))
    }
}

/// The number forms ask `number` whether the text is one in range; the error says the range.
macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            let plain = self.document.kind(self.node) == YamlNodeKind::Plain;
            let number = number::parse_integer(self.text()).filter(|_| plain);
            match number.and_then(|number| <$type>::try_from(number).ok()) {
                Some(value) => visitor.$visit(value).map_err(|error| self.place(error)),
                None => Err(self.wrong(match <$type>::BITS {
                    ..=16 => format!("a whole number from {} to {}", <$type>::MIN, <$type>::MAX),
                    _ if <$type>::MIN == 0 => "a whole number, not negative".to_owned(),
                    _ => "a whole number".to_owned(),
                })),
            }
        }
    )*};
}

impl<'a> de::Deserializer<'a> for YamlDecoder<'a, '_> {
    type Error = DecodeError;

    integers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    );

    /// For free-form values (module parameters): only what is beyond doubt a number or a bool is
    /// one.
    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let text = self.text();
        let value = match self.document.kind(self.node) {
            YamlNodeKind::Mapping | YamlNodeKind::Alias => return self.visit_map(visitor),
            YamlNodeKind::Sequence => return self.visit_seq(visitor),
            YamlNodeKind::Quoted => visitor.visit_borrowed_str(text),
            YamlNodeKind::Plain if self.document.is_null(self.node) => visitor.visit_unit(),
            YamlNodeKind::Plain => match (
                text,
                number::parse_integer(text),
                number::parse_real_number(text),
            ) {
                ("true", ..) => visitor.visit_bool(true),
                ("false", ..) => visitor.visit_bool(false),
                (_, Some(n), _) if i64::try_from(n).is_ok() => visitor.visit_i64(n as i64),
                (_, Some(n), _) if u64::try_from(n).is_ok() => visitor.visit_u64(n as u64),
                (_, None, Some(real)) => visitor.visit_f64(real),
                _ => visitor.visit_borrowed_str(text),
            },
        };
        value.map_err(|error| self.place(error))
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let value = match (self.document.kind(self.node), self.text()) {
            (YamlNodeKind::Plain, "true") => true,
            (YamlNodeKind::Plain, "false") => false,
            (YamlNodeKind::Plain, text) if number::is_yaml_1_1_bool(text) => {
                return Err(self.place(DecodeError::new(DecodeProblem::OldBool {
                    word: text.to_owned(),
                })));
            }
            _ => return Err(self.wrong("`true` or `false`")),
        };
        visitor.visit_bool(value).map_err(|error| self.place(error))
    }

    fn deserialize_f32<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match number::parse_real_number(self.text())
            .filter(|_| self.document.kind(self.node) == YamlNodeKind::Plain)
        {
            Some(value) => visitor.visit_f64(value).map_err(|error| self.place(error)),
            None => Err(self.wrong("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor
            .visit_borrowed_str(self.scalar("text")?)
            .map_err(|error| self.place(error))
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        // A key without a value is more often a forgotten value than a choice of the default.
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.visit_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.visit_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.visit_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let text = self.scalar(&format!("one of {}", words.join(", ")))?;
        visitor
            .visit_enum(text.into_deserializer())
            .map_err(|error: DecodeError| self.place(error))
    }

    fn deserialize_identifier<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    serde::forward_to_deserialize_any! {
    <W: Visitor<'a>>
    i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any }
}

struct SeqAccess<'a, 'm> {
    decoder: YamlDecoder<'a, 'm>,
    items: super::yaml::Children<'a>,
}

impl<'a> de::SeqAccess<'a> for SeqAccess<'a, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(node) = self.items.find(|item| !self.decoder.mask.contains(item)) else {
            return Ok(None);
        };
        let decoder = YamlDecoder {
            node,
            ..self.decoder
        };
        seed.deserialize(decoder)
            .map(Some)
            .map_err(|error| decoder.place(error).in_entry(node))
    }
}

struct MapAccess<'a, 'm> {
    decoder: YamlDecoder<'a, 'm>,
    entries: Entries<'a>,
    value: Option<super::yaml::YamlEntry>,
}

impl<'a> de::MapAccess<'a> for MapAccess<'a, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        let Some(entry) = self
            .entries
            .find(|entry| !self.decoder.mask.contains(&entry.key))
        else {
            return Ok(None);
        };
        self.value = Some(entry);
        let key = de::value::BorrowedStrDeserializer::new(self.decoder.document.text(entry.key));
        seed.deserialize(key)
            .map(Some)
            .map_err(|error: DecodeError| error.at(entry.key).in_entry(entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        let Some(entry) = self.value.take() else {
            return Err(de::Error::custom("a value without its key"));
        };
        let decoder = YamlDecoder {
            node: entry.value,
            ..self.decoder
        };
        seed.deserialize(decoder)
            .map_err(|error| decoder.place(error).under(entry.key).in_entry(entry.key))
    }
}
