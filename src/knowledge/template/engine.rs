//! Tera, confined: one instance a module, every template compiled once, typed results, and values
//! quoted in shell templates.

use super::counted::CountedTemplate;
use super::filters;
use super::output_limit;
use super::snippet::{Makes, Snippet};
use super::template_error::{
    diagnose_tera_error, new_size_limit_error, new_unreadable_template_error,
    new_unusable_template_error, new_work_limit_error,
};
use super::token::{self, TemplateReadError};
use super::work;
use crate::spec::yaml::YamlDocument;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::{Diagnostic, secret};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tera::{Context, Tera};

/// What a template made; boxed, because errors are rare and large.
pub type Rendered<T> = Result<T, Box<Diagnostic>>;

/// The compiled templates of one module.
#[derive(Clone)]
pub struct Engine {
    tera: Tera,
    /// Templates that took more work than they may, with what is said of it: they are not tried
    /// again for the next host.
    spent: Arc<Mutex<BTreeMap<String, Diagnostic>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    /// Compiles the templates; what Tera cannot read becomes diagnostics.
    pub fn new(snippets: &[&Snippet], document: &YamlDocument) -> Result<Self, Vec<Diagnostic>> {
        let mut tera = Tera::new();
        tera.autoescape_on([".sh"]);
        tera.set_escape_fn(|value, out| out.write_all(secret::shell_word(value).as_bytes()));
        filters::register_filters(&mut tera);
        work::register_charging_filters(&mut tera);
        let (mut errors, mut sound) = (Vec::new(), Vec::new());
        for snippet in snippets.iter().filter(|snippet| !snippet.faulty) {
            match token::read_template(snippet.text()).unread {
                Some((at, why)) if why != TemplateReadError::Malformed => {
                    errors.push(new_unreadable_template_error(snippet, document, at, why))
                }
                unread => sound.push((snippet, CountedTemplate::of(snippet.text()).text, unread)),
            }
        }
        // All at once, because Tera looks at all of them again with each call; one by one only to
        // tell which it cannot read.
        match tera.add_raw_templates(sound.iter().map(|(snippet, text, _)| (&snippet.name, text))) {
            Ok(()) => {
                for (snippet, _, unread) in &sound {
                    if let Some((at, why)) = *unread {
                        errors.push(new_unreadable_template_error(snippet, document, at, why));
                    }
                }
            }
            Err(_) => {
                for (snippet, text, _) in &sound {
                    if let Err(error) = tera.add_raw_template(&snippet.name, text) {
                        errors.push(diagnose_tera_error(snippet, document, &error));
                    }
                }
            }
        }
        if errors.is_empty() {
            Ok(Engine {
                tera,
                spent: Arc::default(),
            })
        } else {
            Err(errors)
        }
    }

    /// The text that a template makes.
    pub fn text(
        &self,
        snippet: &Snippet,
        context: &Context,
        document: &YamlDocument,
    ) -> Rendered<String> {
        if let Some(known) = self.spent().get(&snippet.name) {
            return Err(Box::new(known.clone()));
        }
        let mut page = output_limit::TemplateOutputBuffer::default();
        work::begin_rendering();
        let made = self
            .tera
            .render_to(&snippet.name, context, &mut page)
            .and_then(|()| page.charge());
        match (made, work::end_rendering()) {
            (Ok(()), _) => Ok(page.text()),
            (Err(_), _) if page.is_over => Err(Box::new(new_size_limit_error(
                snippet.place(document, &(0..snippet.text().len())),
            ))),
            (Err(error), Some(reason)) => {
                let problem = new_work_limit_error(snippet, document, &error, reason);
                self.spent().insert(snippet.name.clone(), problem.clone());
                Err(Box::new(problem))
            }
            (Err(error), None) => Err(Box::new(diagnose_tera_error(snippet, document, &error))),
        }
    }

    fn spent(&self) -> MutexGuard<'_, BTreeMap<String, Diagnostic>> {
        lock_ignoring_poison(&self.spent)
    }

    /// The value that a template makes; text where it is not one lone expression.
    pub fn value(
        &self,
        snippet: &Snippet,
        context: &Context,
        document: &YamlDocument,
    ) -> Rendered<Value> {
        let text = self.text(snippet, context, document)?;
        if snippet.makes != Makes::Value {
            return Ok(Value::String(text));
        }
        serde_json::from_str(&text).map_err(|error| {
            Box::new(new_unusable_template_error(
                snippet,
                document,
                format!("the value cannot be used: {error}"),
            ))
        })
    }

    /// Whether a condition holds.
    pub fn holds(
        &self,
        snippet: &Snippet,
        context: &Context,
        document: &YamlDocument,
    ) -> Rendered<bool> {
        Ok(self.text(snippet, context, document)? == "1")
    }
}

/// A context of these values.
pub fn build_context(values: &BTreeMap<String, Value>) -> Context {
    let mut context = Context::new();
    for (name, value) in values {
        add_context_value(&mut context, name, value);
    }
    context
}

pub use work::{
    SharedAllowance, is_allowance_used_up, share_allowance, take_kept_bytes, take_shared,
};

/// Puts another value into a context.
pub fn add_context_value(context: &mut Context, name: &str, value: &Value) {
    context.insert(name.to_owned(), value);
}

#[cfg(test)]
mod tests {
    use super::super::snippet::TemplateOrigin;
    use super::*;
    use crate::spec::source::{SourceFile, SourceText};
    use crate::spec::yaml::AliasBudget;
    use railwright_base::Reason;
    use serde_json::json;

    fn render(text: &str, makes: Makes, value: Value) -> Result<Value, Reason> {
        let source = Arc::new(SourceText::new(SourceFile {
            name: "t".into(),
            text: text.to_owned(),
        }));
        let document = YamlDocument::parse(
            Arc::new(SourceText::new(SourceFile {
                name: "m".into(),
                text: "a: b".into(),
            })),
            &mut AliasBudget::default(),
            &mut Vec::new(),
        )
        .unwrap();
        let snippet = Snippet::new("t", text, TemplateOrigin::File(source), makes);
        let shown = |d: &Diagnostic| {
            d.labels
                .iter()
                .map(|l| format!("{:?}: {}", &text[l.span.clone()], l.text))
                .collect::<String>()
        };
        let engine = Engine::new(&[&snippet], &document)
            .map_err(|errors| errors.iter().map(shown).collect::<String>())?;
        engine
            .value(
                &snippet,
                &build_context(&BTreeMap::from([("x".to_owned(), value)])),
                &document,
            )
            .map_err(|error| shown(&error).into())
    }

    #[test]
    fn a_map_has_one_order_in_texts() {
        let map: Value = ('a'..='h')
            .map(|key| (key.to_string(), json!(1)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let desired = json!(r#"is {"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1} abcdefgh"#);
        for _ in 0..4 {
            let text = "is {{ x | json }} {% for key, one in x %}{{ key }}{% endfor %}";
            assert_eq!(render(text, Makes::Text, map.clone()), Ok(desired.clone()));
        }
    }

    #[test]
    fn a_lone_expression_keeps_its_type_and_text_stays_text() {
        for (text, made) in [
            ("{{ x.mtu }}", json!(9000)),
            ("{{ x.mtu + 1 }} ", json!(9001)),
            ("{{ x.mtu if x.mtu > 9 else null }}", json!(9000)),
            ("{{ x }}", json!({"mtu": 9000})),
            ("mtu {{ x.mtu }}", json!("mtu 9000")),
            ("{{ x.none | default(value=null) }}", json!(null)),
            ("{{ 'a%b$' | systemd }} ", json!("\"a%%b$$\"")),
        ] {
            assert_eq!(
                render(text, Makes::Text, json!({"mtu": 9000})).unwrap(),
                made,
                "{text}"
            );
        }
    }

    #[test]
    fn errors_point_at_the_authors_own_bytes() {
        for (text, said) in [
            ("{{ x.mtuu }}", r#"" x.mtuu ": the value is not there"#),
            ("a {{ x.mtu.y.z }}", r#""y": Field `y` is not defined."#),
            ("{{ x.mtuu | sh }}", r#""sh": the value is not there"#),
        ] {
            assert_eq!(
                render(text, Makes::Text, json!({"mtu": 9000})),
                Err(said.into()),
                "{text}"
            );
        }
        assert!(render("{{ x. }}", Makes::Text, json!(1)).is_err());
    }

    #[test]
    fn no_template_makes_more_than_a_text_may_have() {
        let doubling = |n: usize| "| replace(from='a', to='aa')".repeat(n);
        let made = |text: &str| {
            render(
                text,
                Makes::Text,
                json!({"mtu": "a", "list": vec!["a"; 1000]}),
            )
        };
        assert_eq!(
            made(&format!("{{{{ x.mtu {} }}}}", doubling(4))).unwrap(),
            json!("a".repeat(16))
        );
        for (text, at) in [
            (format!("{{{{ x.mtu {} }}}}", doubling(60)), "replace"),
            (
                "{{ x.list | join(sep=x.list | join(sep='0123456789')) }}".to_owned(),
                "join",
            ),
            (
                format!("{{{{ x.mtu {} }}}}", "| systemd".repeat(40)),
                "systemd",
            ),
            (
                format!(
                    "{{{{ x.mtu {} | indent(width=1000) }}}}",
                    "| replace(from='a', to='a\na')".repeat(14)
                ),
                "indent",
            ),
        ] {
            let said = made(&text).unwrap_err();
            let is_too_large = said.as_words().ends_with(output_limit::TOO_MUCH)
                && said.as_words().starts_with(&format!("\"{at}"));
            assert!(
                is_too_large || said.as_words().ends_with(work::TOO_MUCH_WORK),
                "{text}: {said}"
            );
        }
    }

    /// None of these ends by itself in the time that anybody has; Tera has no limit of its own but
    /// that of `range`.
    #[test]
    fn no_template_works_without_end() {
        let list: Vec<String> = (0..1000).map(|n| format!("host-{n}")).collect();
        let value = |text: &str| json!({ "list": list, "text": if text.contains("x.text") { "a".repeat(1 << 20) } else { String::new() } });
        for (text, at) in [
            (
                "{% for a in range(end=100000) %}{% for b in range(end=30) %}{% endfor %}{% endfor %}",
                "{% for b",
            ),
            (
                "{% for a in range(end=99999) %}{% for b in x.list %}{% endfor %}{% endfor %}",
                "{% for b",
            ),
            (
                "\n\
                 {% for a in x.list %}{% for b in x.list %}{% for c in x.list %}{{ c \
                 }}{% endfor %}{% endfor %}{% endfor %}",
                "{% for",
            ),
            (
                "{% set r = range(end=90000) %}{% for a in r %}{% if r == r %}{% endif %}{% endfor %}",
                "{% ",
            ),
            (
                "{% for a in x.list %}{% if range(end=50000) == range(end=50000) %}{% endif %}{% endfor %}",
                "{% if",
            ),
            (
                "{% for a in x.list %}{% for b in x.list %}{{ x.text | length \
                 }}{% endfor %}{% endfor %}",
                "{{ x.text",
            ),
            (
                "{% for a in x.list %}{% if x.text ~ a == x.text %}{% endif %}{% endfor %}",
                "{% if x.text",
            ),
            (
                "{% for a in x.text %}{% for b in x.text %}{% endfor %}{% endfor %}",
                "{% for",
            ),
            (
                "{% for a in x.list %}{{ range(end=90000) | unique | length }}{% endfor %}",
                "{{ range",
            ),
            (
                "{% for a in x.list %}{% for b in x.list %}{{ x.list | sort | reverse | first \
                 }}{% endfor %}{% endfor %}",
                "{{ x.list",
            ),
            ("n {{ range(end=100000000) | length }}", "{{ range"),
            (
                "{% set l = range(end=9999) %}{% set m = range(end=9999) %}{% for a in l %}{% if m == l %}{% endif %}{% endfor %}",
                "{% if m",
            ),
            (
                "{% set l = range(end=9999) %}{% for a in l %}{% if (l ~ 'a') is string %}{% endif %}{% endfor %}",
                "{% if (l",
            ),
            (
                "{% set l = range(end=9999) %}{% for a in l %}{% if l[0:9999] %}{% endif %}{% endfor %}",
                "{% if l[0",
            ),
            (
                "{% set l = range(end=9999) %}{% for a in l %}{% if 'x' in l %}{% endif %}{% endfor %}",
                "{% if 'x'",
            ),
            (
                "{% set l = range(end=9999) %}{% for a in l %}{% if l is containing(pat='x') %}{% endif %}{% endfor %}",
                "{% if l is",
            ),
            (
                "{% set l = range(end=9999) %}{% for a in l %}{% if l | default(value=1) == l | default(value=2) %}{% endif %}{% endfor %}",
                "{% if l |",
            ),
            (
                "{% set l = [x.list, x.list, x.list] %}{% for a in x.list %}{% for b in x.list %}{% if l == 1 %}{% endif %}{% endfor %}{% endfor %}",
                "{% if l",
            ),
            (
                "n {{ [x.text | split(pat=''), x.text | split(pat=''), x.text | split(pat='')] | \
                 length }}",
                "{{ [x.text",
            ),
        ] {
            let said = render(text, Makes::Text, value(text))
                .map(|_| "it was made".to_owned())
                .unwrap_or_else(|said| said.to_string());
            assert!(
                said.ends_with(work::TOO_MUCH_WORK) && said.starts_with(&format!("\"{at}")),
                "{text}: {said}"
            );
        }
        let most = "{% for a in x.list %}{% for b in range(end=64) %}{{ a | upper }}.{{ b \
                    }}{% if a == 'x' %}!{% endif %}\n\
                    {% endfor %}{% endfor %}";
        assert!(
            render(most, Makes::Text, value(most)).is_ok(),
            "a loop over all the rails of a thousand hosts is no such thing"
        );
    }

    #[test]
    fn a_template_that_is_not_read_to_its_end_is_not_given_to_tera() {
        let elifs = |n: usize| {
            format!(
                "{{% if false %}}{}{{% endif %}}",
                "{% elif false %}".repeat(n)
            )
        };
        for (text, said) in [
            (
                "a".repeat(token::TEMPLATE_MAX) + "{{ x }}",
                "it has more than 256 KiB",
            ),
            (
                "{{ 1 }}".repeat(token::TAGS_MAX) + "{{ 1 }}",
                "more than 5000 outputs and tags stand in it, up to here",
            ),
            (
                elifs(9_000),
                "`if`, `elif`, `for` or brackets are open here more than 64 deep",
            ),
        ] {
            let found = render(&text, Makes::Text, json!(1)).unwrap_err();
            assert!(
                found.as_words().ends_with(said),
                "{}",
                &found.as_words()[found.as_words().len().saturating_sub(90)..]
            );
        }
        for text in [
            "{{ 1 }}".repeat(token::TAGS_MAX) + &"a".repeat(9999),
            elifs(token::DEPTH_MAX - 1),
        ] {
            assert!(render(&text, Makes::Text, json!(1)).is_ok());
        }
        let hidden = "{#} {% raw %} #}{{ x.a | nosuch }}{# {% endraw %} #}";
        assert!(
            render(hidden, Makes::Text, json!(1))
                .unwrap_err()
                .as_words()
                .contains("nosuch")
        );
    }

    #[test]
    fn what_is_said_names_nothing_of_ours() {
        for text in [
            "a {{ y }}",
            "a {{ x.b.c ~ 1 }}",
            "a {{ x.b + 1 }}",
            "{% for a in y %}{% endfor %}a",
            "a {{ x.b | upper ~ x.b }}",
        ] {
            let said = render(text, Makes::Text, json!({"a": 1})).unwrap_err();
            assert!(
                ["`_", "_turns", "_text", "_whole", "_largest"]
                    .iter()
                    .all(|ours| !said.as_words().contains(ours)),
                "{said}"
            );
        }
        let said = render("a {{ 1 + x.b }}", Makes::Text, json!({"a": 1})).unwrap_err();
        assert!(said.as_words().starts_with("\"1 + x.b\": "), "{said}");
    }

    #[test]
    fn templates_that_share_an_allowance_use_it_up_together() {
        let text = "{% for a in range(end=99999) %}{% set b = a * 2 %}{% endfor %}";
        let shared = share_allowance(1);
        let said = (0..1000)
            .find_map(|_| render(text, Makes::Text, json!(1)).err())
            .unwrap();
        assert!(
            said.as_words().starts_with("\"{% for")
                && said.as_words().ends_with(work::TOO_MUCH_TOGETHER),
            "{said}"
        );
        assert!(is_allowance_used_up());
        drop(shared);
        assert!(
            render(text, Makes::Text, json!(1)).is_ok(),
            "what comes after is not charged for it"
        );
    }

    #[test]
    fn what_is_written_is_charged() {
        let text = "{{ x }} {{ x }}";
        let _shared = share_allowance(0);
        assert!(take_shared((16 << 20) - 10_000));
        let value = json!("a".repeat(1 << 16));
        let said = (0..9)
            .find_map(|_| render(text, Makes::Text, value.clone()).err())
            .unwrap();
        assert!(said.as_words().ends_with(work::TOO_MUCH_TOGETHER), "{said}");
    }

    #[test]
    fn our_own_filters_make_what_teras_made() {
        for (text, made) in [
            ("{{ 'a-b-' | replace(from='-', to='+') }}", "a+b+"),
            ("{{ ['a', 1] | join(sep=', ') }}", "a, 1"),
            ("{{ ['a', 1] | join }}", "a1"),
            ("{{ 'a\n\nb\n' | indent(width=2) }}", "a\n\n  b\n"),
            (
                "{{ 'a\n\nb' | indent(width=1, first=true, blank=true) }}",
                " a\n \n b",
            ),
        ] {
            assert_eq!(
                render(text, Makes::Text, json!(1)).unwrap(),
                json!(made),
                "{text}"
            );
        }
    }

    fn expressions() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        use proptest::sample::select;
        const VALUES: [&str; 23] = [
            "x",
            "x.a",
            "x.b.b",
            "x.none",
            "x?.b",
            "x['a']",
            "l",
            "l[0]",
            "l[1:]",
            "l[0:2][1]",
            "l[i]",
            "m[0].k",
            "m?[0]",
            "t",
            "t[0]",
            "1",
            "'n]'",
            "[x.a, 2]",
            "{'k': t}",
            "[...l, 3]",
            "range(end=3)",
            "none",
            "true",
        ];
        const OPERATORS: [&str; 12] = [
            "~", "==", "!=", "<", ">=", "+", "-", "*", "in", "not in", "and", "or",
        ];
        const FILTERS: [&str; 12] = [
            "default(value=t)",
            "length",
            "str",
            "first",
            "upper",
            "json",
            "reverse",
            "split(pat=t)",
            "join(sep='-')",
            "keys",
            "unique",
            "sort",
        ];
        const TESTS: [&str; 5] = [
            "defined",
            "not defined",
            "string",
            "containing(pat='k')",
            "not containing(pat=t)",
        ];
        let leaf = select(&VALUES[..]).prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (inner.clone(), select(&OPERATORS[..]), inner.clone())
                    .prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
                inner.clone().prop_map(|a| format!("({a})")),
                (inner.clone(), select(&FILTERS[..]))
                    .prop_map(|(a, filter)| format!("{a} | {filter}")),
                (inner.clone(), select(&TESTS[..])).prop_map(|(a, test)| format!("{a} is {test}")),
                inner.clone().prop_map(|a| format!("not {a}")),
                (inner.clone(), inner.clone(), inner)
                    .prop_map(|(a, b, c)| format!("{a} if {b} else {c}")),
            ]
        })
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(1000))]
        #[test]
        fn what_counts_changes_nothing_that_is_made(parts in proptest::collection::vec((0..4, expressions()), 1..4)) {
            let part = |(n, e): &(i32, String)| match n {
                0 => format!("{{{{ {e} }}}};"),
                1 => format!("{{% if {e} %}}yes{{% elif {e} %}}no{{% endif %}};"),
                2 => format!("{{% for i in {e} %}}{{{{ i }}}},{{% else %}}none{{% endfor %}};"),
                _ => format!("{{% set v = {e} %}}{{{{ v }}}};"),
            };
            let text: String = parts.iter().map(part).collect();
            let values = json!({"x": {"a": "k", "b": {"b": 1}}, "l": ["k", 1, "t"], "m": [{"k": 1}], "t": "k-k", "i": 1, "v": 1});
            let made = |text: &str| {
                let mut tera = Tera::new();
                tera.autoescape_on(Vec::<&str>::new());
                filters::register_filters(&mut tera);
                work::register_charging_filters(&mut tera);
                work::begin_rendering();
                tera.add_raw_template("t", text).map(|()| tera.render("t", &Context::from_serialize(&values).unwrap()).ok()).ok()
            };
            let (plain, counted) = (made(&text), made(&CountedTemplate::of(&text).text));
            if plain.is_some() {
                proptest::prop_assert_eq!(plain, counted, "{}", text);
            }
        }

        #[test]
        fn no_value_leaves_its_shell_word(value in ".{0,20}") {
            let made = render("printf %s {{ x }}", Makes::Shell, json!(value)).unwrap();
            let words = shlex::split(made.as_str().unwrap()).unwrap();
            proptest::prop_assert_eq!(words, vec!["printf".to_owned(), "%s".to_owned(), value.replace('\0', "")]);
        }
    }
}
