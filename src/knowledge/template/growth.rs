//! A text that is made longer of itself doubles with every turn, and sixty turns are more than any
//! memory: a `set` or the list of a `for` that lengthens a text may not name what was lengthened
//! before. What one expression makes is bounded by `output_limit`.

use super::names::{TemplateProblem, is_keyword};
use super::token::{Placed, TemplatePiece, Token, split_into_pieces};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Filters whose result can be longer, or a list deeper, than what they are given.
const LENGTHENS: [&str; 8] = [
    "group_by", "indent", "join", "json", "pairs", "replace", "sh", "systemd",
];

/// Names that a tag gives to what an expression makes.
struct TemplateBinding<'a> {
    names: Vec<&'a str>,
    expression: &'a [Placed],
    span: Range<usize>,
}

/// Every `set` and `for` of the template that would make a made text longer.
pub fn check_text_growth(text: &str) -> Vec<TemplateProblem> {
    let pieces = split_into_pieces(text);
    let bindings: Vec<TemplateBinding> = pieces.iter().filter_map(parse_binding).collect();
    let mut users: BTreeMap<&str, Vec<&TemplateBinding>> = BTreeMap::new();
    for binding in &bindings {
        for name in names_in(binding.expression) {
            users.entry(name).or_default().push(binding);
        }
    }
    let lengthening: Vec<&TemplateBinding> = bindings
        .iter()
        .filter(|binding| may_lengthen_text(binding.expression))
        .collect();
    // Loops come round again, so what is made further down counts further up as well.
    let mut open: Vec<&str> = Vec::new();
    for binding in &lengthening {
        open.extend(&binding.names);
    }
    let mut made: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(name) = open.pop() {
        for binding in users.remove(name).unwrap_or_default() {
            for name in &binding.names {
                if made.insert(*name) {
                    open.push(*name);
                }
            }
        }
    }
    let mut problems = Vec::new();
    for binding in lengthening {
        if let Some(name) = find_used_name(binding.expression, &made) {
            problems.push(new_growth_problem(name, &binding.span));
        }
    }
    problems
}

fn new_growth_problem(name: &str, span: &Range<usize>) -> TemplateProblem {
    TemplateProblem {
        code: "RW0205",
        span: span.clone(),
        message: format!(
            "`{name}` was made of other text already; making it longer could go on until the \
             memory is full"
        ),
        fix: Some("write the parts out one after the other where the text is used".to_owned()),
    }
}

fn parse_binding(piece: &TemplatePiece) -> Option<TemplateBinding<'_>> {
    let TemplatePiece::Tag(span, words) = piece else {
        return None;
    };
    let split = match words.first()? {
        (word, _) if word.is_word("set") || word.is_word("set_global") => {
            words.iter().position(|(word, _)| word.is("="))?
        }
        (word, _) if word.is_word("for") => {
            words.iter().position(|(word, _)| word.is_word("in"))?
        }
        _ => return None,
    };
    let mut names = Vec::new();
    for (word, _) in &words[1..split] {
        if let Token::Ident(name) = word {
            names.push(name.as_str());
        }
    }
    Some(TemplateBinding {
        names,
        expression: &words[split + 1..],
        span: span.clone(),
    })
}

/// Joins texts, puts values into a list, or takes a filter that lengthens.
fn may_lengthen_text(words: &[Placed]) -> bool {
    words.iter().enumerate().any(|(at, (word, _))| {
        let before = at.checked_sub(1).map(|at| &words[at].0);
        match word {
            Token::Symbol("~" | "{") => true,
            Token::Symbol("[") => match before {
                // Behind a keyword it is a list; one that something is looked for in goes no
                // further than that.
                Some(Token::Ident(name)) => is_keyword(name) && name != "in",
                // Behind a closing bracket it takes an element out.
                Some(Token::Symbol(")" | "]")) => false,
                _ => true,
            },
            Token::Ident(filter) => {
                before.is_some_and(|before| before.is("|")) && LENGTHENS.contains(&filter.as_str())
            }
            _ => false,
        }
    })
}

/// The first of these names that the expression takes a value from.
fn find_used_name<'a>(words: &'a [Placed], made: &BTreeSet<&str>) -> Option<&'a str> {
    names_in(words).find(|name| made.contains(name))
}

/// The names that the expression takes a value from.
fn names_in(words: &[Placed]) -> impl Iterator<Item = &str> {
    words.iter().enumerate().filter_map(|(at, (word, _))| {
        let Token::Ident(name) = word else {
            return None;
        };
        let is_field = at
            .checked_sub(1)
            .is_some_and(|at| matches!(words[at].0, Token::Symbol("." | "?." | "|")));
        let is_argument = words.get(at + 1).is_some_and(|(word, _)| word.is("="));
        (!is_field && !is_argument).then_some(name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_of_itself_is_refused_and_what_does_not_is_not() {
        for (text, wrong) in [
            (
                "{% set a = host.name ~ '-x' %}{% set b = a %}{{ b ~ a }}",
                None,
            ),
            (
                "{% set n = 0 %}{% for r in host.rails %}{% set_global n = n + 1 %}{% endfor %}{{ \
                 n }}",
                None,
            ),
            (
                "{% for r in host.rails %}{% set name = r.netdev ~ '.network' %}{{ name \
                 }}{% endfor %}",
                None,
            ),
            ("{% for x in ['a', 'b'] %}{{ x ~ x }}{% endfor %}", None),
            (
                "{% set first = list[0] %}{% set other = list[first] %}",
                None,
            ),
            (
                "{% set a = 'x' ~ 'y' %}{% set a = a ~ a %}",
                Some("{% set a = a ~ a %}"),
            ),
            (
                "{% set a = 'x' %}{% for i in range(end=60) %}{% set_global a = a ~ a %}{% endfor %}",
                Some("{% set_global a = a ~ a %}"),
            ),
            (
                "{% set b = 'x' %}{% for i in list %}{% set_global b = a %}{% set_global a = b ~ b %}{% endfor %}",
                Some("{% set_global a = b ~ b %}"),
            ),
            (
                "{% set a = 'x' ~ 'y' %}{% set b = a | replace(from='x', to='xx') %}",
                Some("{% set b = a | replace(from='x', to='xx') %}"),
            ),
            (
                "{% for a in ['x' ~ 'y'] %}{% for b in [a ~ a] %}{% endfor %}{% endfor %}",
                Some("{% for b in [a ~ a] %}"),
            ),
            (
                "{% set a = ['x'] %}{% set b = [a, a] %}",
                Some("{% set b = [a, a] %}"),
            ),
            (
                "{% set a = [1] %}{% set_global a = 1 if false else [a, a] %}",
                Some("{% set_global a = 1 if false else [a, a] %}"),
            ),
            (
                "{% set a = [1] %}{% set_global a = a and [a, a] %}",
                Some("{% set_global a = a and [a, a] %}"),
            ),
            (
                "{% set a = ['x' ~ 'y'] %}{% set b = 'x' in ['x', a] %}{% set c = a[0] %}",
                None,
            ),
            (
                "{% set m = [['k', 1]] | group_by(attribute='0') %}{% set m = m | pairs %}",
                Some("{% set m = m | pairs %}"),
            ),
            (
                "{% set a = {'k': 'x'} %}{% set b = {'k': a} %}",
                Some("{% set b = {'k': a} %}"),
            ),
        ] {
            let found = check_text_growth(text);
            assert_eq!(
                found.first().map(|problem| &text[problem.span.clone()]),
                wrong,
                "{text}: {found:?}"
            );
        }
    }
}
