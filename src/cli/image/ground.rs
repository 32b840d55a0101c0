//! The fabric that an image is for: given, or read from an inventory with the NICs on it and the
//! catalogue's entries of its own.

use crate::cli::CommandFailure;
use railwright_base::quote;
use railwright_knowledge::catalog::{Catalog, SOFT_ROCE};
use railwright_session::{Knowledge, read_inventory};
use std::path::PathBuf;
use std::sync::Arc;

/// What the fabric is.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = true)]
pub struct ImageFabricArguments {
    /// The folder that holds the spec, which says the fabric and its NICs
    #[arg(short, long, value_name = "FOLDER")]
    pub inventory: Option<PathBuf>,
    /// The kind of fabric, where it is not the spec's
    #[arg(long, value_enum, value_name = "KIND")]
    pub fabric: Option<ImageFabricKind>,
}

/// Kinds of fabric whose libraries are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImageFabricKind {
    /// Elastic RDMA of Alibaba Cloud
    Erdma,
    /// RDMA over Ethernet
    Rocev2,
    /// InfiniBand
    Infiniband,
}

impl ImageFabricKind {
    /// As the spec has it.
    pub fn word(self) -> &'static str {
        match self {
            ImageFabricKind::Erdma => "erdma",
            ImageFabricKind::Rocev2 => "rocev2",
            ImageFabricKind::Infiniband => "infiniband",
        }
    }
}

/// What is known of it.
pub struct ImageFabricContext {
    /// The catalogue, with the inventory's own entries where there is one.
    pub catalog: Arc<Catalog>,
    /// The kind, as the spec has it.
    pub fabric: String,
    /// The drivers of the NICs, as entries of NICs have them; none where no NIC is known.
    pub drivers: Vec<String>,
}

impl ImageFabricArguments {
    /// Reads what there is to read.
    pub fn ground(&self) -> Result<ImageFabricContext, CommandFailure> {
        let said = self.fabric.map(|kind| kind.word().to_owned());
        let Some(path) = &self.inventory else {
            let catalog = Knowledge::read("", &[])?.catalog;
            return Ok(ImageFabricContext {
                catalog,
                fabric: said.unwrap_or_default(),
                drivers: Vec::new(),
            });
        };
        let inventory = read_inventory(path)?;
        let (catalog, spec) = (inventory.knowledge.catalog.clone(), &inventory.loaded.spec);
        let of_spec = serde_json::to_value(spec.fabric.kind)
            .ok()
            .and_then(|kind| kind.as_str().map(str::to_owned))
            .unwrap_or_default();
        let mut drivers = Vec::new();
        for group in &spec.nodes {
            let Some(nics) = &group.nics else {
                continue;
            };
            if nics.model.as_str() == SOFT_ROCE {
                drivers.push("any".to_owned());
            } else if let Some(entry) = catalog.nic.get(nics.model.as_str()) {
                drivers.push(entry.driver.clone());
            }
        }
        drivers.sort();
        drivers.dedup();
        Ok(ImageFabricContext {
            catalog,
            fabric: said.unwrap_or(of_spec),
            drivers,
        })
    }

    /// The words by which another command finds the same.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if let Some(path) = &self.inventory {
            words.push(format!("-i {}", quote::quote_path(path)));
        }
        if let Some(kind) = self.fabric {
            words.push(format!("--fabric {}", kind.word()));
        }
        words.join(" ")
    }
}
