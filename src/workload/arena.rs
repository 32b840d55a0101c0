//! A whole line `arena submit pytorch ...` as a training. What Arena knows and we do not is an
//! error at its word, never left out.

use super::asked::RequestPlaces;
use super::flags::{FLAGS, Flag, apply_flag};
use super::request::{Devices, Pods, Pytorch};
use super::words::{NoWords, ShellWord, split_shell_words};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, suggest};
use railwright_knowledge::spec::{SourceFile, SourceText, Sources};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What carets call the line.
const NAME: &str = "the line";
/// Other names of the kind (kubeflow/arena: pkg/commands/training/submit_pytorchjob.go).
const KINDS: [&str; 3] = ["pytorch", "pytorchjob", "pj"];
/// Arena's own values where the line says nothing.
const TENSORBOARD: &str = "registry.cn-zhangjiakou.aliyuncs.com/acs/tensorflow:1.12.0-devel";
const LOGDIR: &str = "/training_logs";

/// A line that was read.
#[derive(Debug, Clone)]
pub struct ArenaLine {
    /// The training.
    pub job: Pytorch,
    /// The line, with the place of each word.
    pub asked: RequestPlaces,
}

impl Pytorch {
    /// A training with what Arena gives to one of which nothing is said.
    pub fn of_arena() -> Pytorch {
        Pytorch {
            pods: Pods {
                namespace: "default".to_owned(),
                image_pull_policy: Some("Always".to_owned()),
                gpu_resource: "nvidia.com/gpu".to_owned(),
                ..Pods::default()
            },
            workers: 1,
            working_dir: "/root".to_owned(),
            shell: "sh".to_owned(),
            shared_memory: Some("2Gi".to_owned()),
            ..Pytorch::default()
        }
    }

    /// The dashboard with Arena's values where nothing is said of it.
    pub fn with_dashboard(mut self, is_asked_for: bool) -> Pytorch {
        self.tensorboard = self.tensorboard.filter(|_| is_asked_for);
        if let Some(board) = &mut self.tensorboard {
            if board.image.is_empty() {
                TENSORBOARD.clone_into(&mut board.image);
            }
            if board.logdir.is_empty() {
                LOGDIR.clone_into(&mut board.logdir);
            }
        }
        self
    }
}

/// Reads a line; what is wrong with it comes back in one go, with the line to point into.
pub fn from_arena(line: &str) -> Result<ArenaLine, (Vec<Diagnostic>, Sources)> {
    let mut reading = ArenaLineReader {
        job: Pytorch::of_arena(),
        places: BTreeMap::new(),
        problems: Vec::new(),
        rest: Vec::new(),
        board: false,
    };
    reading.job.pods.devices = Devices::Said(Vec::new());
    reading.job.pods.gpus = Some(0);
    match one_command(line).map_or_else(|| split_shell_words(line), Err) {
        Ok(words) => reading.line(&words, line.len()),
        Err(no) => {
            let error = Diagnostic::error("RW1222", no.message).at(NAME, no.span, no.label);
            reading.problems.push(
                error
                    .state("nothing was run or rendered")
                    .next("give the line of one command, as it is typed"),
            );
        }
    }
    if reading.problems.is_empty() {
        reading.job.command = reading.rest.join(" ");
        let job = reading.job.with_dashboard(reading.board);
        return Ok(ArenaLine {
            job,
            asked: RequestPlaces::of_line(NAME, line, reading.places),
        });
    }
    let mut sources = Sources::default();
    sources.add(Arc::new(SourceText::new(SourceFile {
        name: NAME.to_owned(),
        text: line.to_owned(),
    })));
    Err((reading.problems, sources))
}

/// A shell ends a command with the line, unless a backslash or a quote goes on; what stands below
/// would be another one. Blank lines are none.
fn one_command(line: &str) -> Option<NoWords> {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if is_escaped => is_escaped = c == '\r',
            ('\\', None | Some('"')) => is_escaped = true,
            ('\n', None) if !line[at..].trim().is_empty() && !line[..at].trim().is_empty() => {
                let message = "the line ends, and more stands below".to_owned();
                return Some(NoWords {
                    span: at..at + 1,
                    message,
                    label: "a shell ends the command here",
                });
            }
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (c, _) if c.is_control() && !c.is_whitespace() => {
                let message = "a control character stands in the line".to_owned();
                return Some(NoWords {
                    span: at..at + c.len_utf8(),
                    message,
                    label: "nobody types this",
                });
            }
            _ => {}
        }
    }
    None
}

struct ArenaLineReader {
    job: Pytorch,
    places: BTreeMap<String, Range<usize>>,
    problems: Vec<Diagnostic>,
    rest: Vec<String>,
    /// `--tensorboard` was said, and not undone.
    board: bool,
}

impl ArenaLineReader {
    fn wrong(&mut self, span: Range<usize>, message: String, label: String, next: &str) {
        self.problems.push(
            Diagnostic::error("RW1223", message)
                .at(NAME, span, label)
                .state("nothing was run or rendered")
                .next(next),
        );
    }

    /// Reads the words of a line; `end` is where a word that is missing would stand.
    fn line(&mut self, words: &[ShellWord], end: usize) {
        let mut words = words
            .iter()
            .skip_while(|word| ["sudo", "$"].contains(&word.text.as_str()));
        if !self.read_program(&mut words, end) || !self.read_kind(words.next(), end) {
            return;
        }
        let mut only_words = false;
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "--" if !only_words => only_words = true,
                text if !only_words && text.starts_with(['\u{2013}', '\u{2014}', '\u{2212}']) => {
                    self.report_dash(word);
                }
                text if only_words || !text.starts_with('-') || text == "-" => self.command(word),
                _ => self.option(word, &mut words),
            }
        }
        for (path, what) in [("job.name", "name"), ("job.image", "image")] {
            if !self.places.contains_key(path) && self.problems.is_empty() {
                self.wrong(
                    end..end,
                    format!("the line has no `--{what}`"),
                    format!("`--{what}` should stand here"),
                    "Arena refuses it too",
                );
            }
        }
    }

    /// Whether the line goes on with `arena submit`.
    fn read_program<'a>(
        &mut self,
        words: &mut impl Iterator<Item = &'a ShellWord>,
        end: usize,
    ) -> bool {
        for desired in ["arena", "submit"] {
            let actual = words.next();
            let is_desired = actual.is_some_and(|word| {
                word.text == desired || desired == "arena" && word.text.ends_with("/arena")
            });
            if !is_desired {
                self.wrong(
                    actual.map_or(end..end, |word| word.span.clone()),
                    "the line is no `arena submit pytorch`".to_owned(),
                    format!("`{desired}` should stand here"),
                    "give the whole line from `arena` on",
                );
                return false;
            }
        }
        true
    }

    /// Whether the line is of a kind of job that is translated.
    fn read_kind(&mut self, found: Option<&ShellWord>, end: usize) -> bool {
        if let Some(word) = found
            && KINDS.contains(&word.text.as_str())
        {
            self.places.insert("job.kind".to_owned(), word.span.clone());
            return true;
        }
        self.wrong(
            found.map_or(end..end, |word| word.span.clone()),
            "only trainings of PyTorch are translated".to_owned(),
            "`pytorch` should stand here".to_owned(),
            "railwright job render lists the kinds of jobs that can be rendered",
        );
        false
    }

    fn report_dash(&mut self, word: &ShellWord) {
        self.wrong(
            word.span.clone(),
            format!(
                "`{}` begins with a dash that is no hyphen",
                one_line(&word.text, 60)
            ),
            "a page wrote it so".to_owned(),
            "type it with two hyphens: --name=NAME",
        );
    }

    fn command(&mut self, word: &ShellWord) {
        self.rest.push(word.text.clone());
        let place = self
            .places
            .entry("job.command".to_owned())
            .or_insert_with(|| word.span.clone());
        place.end = word.span.end;
    }

    fn option<'a>(&mut self, word: &'a ShellWord, words: &mut impl Iterator<Item = &'a ShellWord>) {
        let (name, given) = split_flag(&word.text);
        let found = FLAGS.iter().find(|flag| match name {
            Name::Long(name) => flag.name == name,
            Name::Short(short) => flag.short == Some(short),
        });
        let Some(flag) = found else {
            let shown = one_line(&word.text, 60);
            let near = match name {
                Name::Long(name) => {
                    suggest::find_nearest_word(name, FLAGS.iter().map(|flag| flag.name))
                }
                Name::Short(_) => None,
            };
            let label = near.map_or_else(
                || "Arena knows no such flag".to_owned(),
                |near| format!("did you mean `--{near}`?"),
            );
            return self.wrong(
                word.span.clone(),
                format!("`{shown}` is no flag of `arena submit pytorch`"),
                label,
                "arena submit pytorch --help",
            );
        };
        let (value, span) = match (given, flag.takes) {
            (Some(value), _) => (value.to_owned(), word.span.clone()),
            (None, false) => ("true".to_owned(), word.span.clone()),
            (None, true) => match words.next() {
                Some(next) => (next.text.clone(), word.span.start..next.span.end),
                None => {
                    let message = format!("`--{}` has no value", flag.name);
                    return self.wrong(
                        word.span.clone(),
                        message,
                        "a value should follow".to_owned(),
                        "arena submit pytorch --help",
                    );
                }
            },
        };
        self.said(flag, &value, span);
    }

    fn said(&mut self, flag: &Flag, value: &str, span: Range<usize>) {
        if let Some(why) = flag.refused {
            let message = format!("`--{}` is not translated", flag.name);
            return self.wrong(
                span,
                message,
                "this part of the line has no place in what is rendered".to_owned(),
                why,
            );
        }
        if let Err(why) = apply_flag(flag, value, &mut self.job) {
            return self.wrong(
                span,
                format!("`--{}` cannot be `{}`", flag.name, one_line(value, 60)),
                why.to_string(),
                "arena submit pytorch --help",
            );
        }
        let path = match flag.name {
            "env" => format!(
                "jobs.environment.{}",
                value.split('=').next().unwrap_or_default()
            ),
            _ => flag.path.to_owned(),
        };
        if flag.name == "tensorboard" {
            self.board = self.job.tensorboard.is_some();
        }
        self.places.insert(path, span);
    }
}

enum Name<'a> {
    Long(&'a str),
    Short(char),
}

/// `--flag`, `--flag=value`, `-f`, `-fvalue`, `-f=value`, as pflag reads them.
fn split_flag(text: &str) -> (Name<'_>, Option<&str>) {
    if let Some(long) = text.strip_prefix("--") {
        return match long.split_once('=') {
            Some((name, value)) => (Name::Long(name), Some(value)),
            None => (Name::Long(long), None),
        };
    }
    let rest = text.strip_prefix('-').unwrap_or(text);
    let mut chars = rest.chars();
    let short = chars.next().unwrap_or('-');
    let value = chars.as_str();
    (
        Name::Short(short),
        (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_arena_reads_them() {
        let line = from_arena(
            "arena submit pj --name a --image=b -e A=1 -eB=2 --gpus 2 --rdma=false \
             --tensorboard=false --logdir=/l run it",
        )
        .unwrap();
        let job = line.job;
        assert_eq!(
            (
                job.pods.name.as_str(),
                job.pods.image.as_str(),
                job.command.as_str()
            ),
            ("a", "b", "run it")
        );
        assert_eq!(
            job.pods.environment,
            [
                ("A".to_owned(), "1".to_owned()),
                ("B".to_owned(), "2".to_owned())
            ]
        );
        assert_eq!(
            (job.pods.gpus, job.rdma, job.tensorboard),
            (Some(2), false, None)
        );
    }

    #[test]
    fn an_error_is_at_its_word() {
        let told = |line: &str| {
            let (problems, _) = from_arena(line).map(|line| line.job).unwrap_err();
            let label = &problems[0].labels[0];
            (
                problems[0].code.to_string(),
                line[label.span.clone()].to_owned(),
            )
        };
        for (line, code, word) in [
            ("arena submit tfjob --name=a", "RW1223", "tfjob"),
            ("arena get a", "RW1223", "get"),
            ("arena submit pytorch --nme=a", "RW1223", "--nme=a"),
            ("arena submit pytorch --gpus two", "RW1223", "--gpus two"),
            (
                "arena submit pytorch --sync-mode=git",
                "RW1223",
                "--sync-mode=git",
            ),
            ("arena submit pytorch --env", "RW1223", "--env"),
            ("arena submit pytorch --env=$A", "RW1222", "$"),
            ("arena submit pytorch --gpus=1", "RW1223", ""),
        ] {
            assert_eq!(told(line), (code.to_owned(), word.to_owned()), "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_much(rest in ".{0,100}") {
            let line = format!("arena submit pytorch {rest}");
            if let Err((problems, _)) = from_arena(&line) {
                for label in problems.iter().flat_map(|problem| &problem.labels) {
                    proptest::prop_assert!(line.get(label.span.clone()).is_some());
                }
            }
        }
    }
}
