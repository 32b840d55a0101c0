//! Reads an inventory folder into what every command needs.
