//! `railwright explain CODE`: what an error means, why it matters for the fabric, what to do.

use super::Exit;
use crate::base::Diagnostic;
use crate::base::suggest::nearest;
use crate::report::diagnostic;
use crate::report::out::{self, Look};
use crate::report::wrap;
use crate::spec::Sources;
use include_dir::{Dir, include_dir};

static CODES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/docs/codes");

/// Explain a code such as RW0112
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The code, as it stands after `error` or `warning`
    #[arg(value_name = "CODE")]
    what: String,
}

/// Prints the code's page.
pub fn run(arguments: &Explain) -> Exit {
    let code = arguments.what.to_uppercase();
    if let Some((_, page)) = pages().find(|(name, _)| *name == code) {
        out::print(&wrap::page(&page.replacen("# ", &format!("{code}: "), 1), 100));
        return Exit::Done;
    }
    let near = nearest(&code, pages().map(|(name, _)| name));
    let next = match near {
        Some(near) => format!("did you mean `railwright explain {near}`?"),
        None => "codes look like RW0112".to_owned(),
    };
    let unknown =
        Diagnostic::error("RW1008", format!("there is no code `{}`", crate::base::text::one_line(&arguments.what, 40))).next(next);
    out::note(&diagnostic::text(&[unknown], &Sources::default(), Look::of_stderr()));
    Exit::Failed
}

/// Every code with its page, by code.
fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let page = |file: &'static include_dir::File<'static>| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?));
    CODES.files().filter_map(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_starts_with_its_title() {
        assert!(pages().count() > 20);
        for (name, page) in pages() {
            let wide = wrap::page(page, 100).lines().find(|line| line.chars().count() > 100).map(str::to_owned);
            assert_eq!(wide, None, "{name}");
            assert!(name.len() == 6 && name.starts_with("RW") && page.starts_with("# "), "{name}");
        }
    }
}
