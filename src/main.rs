//! Parse arguments, call the command, turn the result into an exit code.

use clap::Parser as _;
use railwright::cli;

fn main() -> std::process::ExitCode {
    railwright_system::descriptors::raise_limit();
    let arguments = match cli::CliArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap exits with 2 on a usage error, which a pipeline would read as "drift".
            let code = if error.use_stderr() {
                cli::Exit::Usage
            } else {
                cli::Exit::Done
            };
            let _ = error.print();
            return std::process::ExitCode::from(code as u8);
        }
    };
    std::process::ExitCode::from(cli::run(arguments) as u8)
}
