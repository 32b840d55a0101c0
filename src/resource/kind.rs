//! What every resource kind can do, and the list of kinds.

use super::body::BodyType;
use super::joined_body::join_open_parts;
use super::kubernetes_object::access::{ApiVerb, Right};
use super::kubernetes_object::request::ObjectName;
use super::{DesiredResource, Read, ReadResults, Reading, ResourceDiff};
use railwright_base::TargetKind;
use serde_json::Value;

/// What is wrong in a resource's body; the module loader puts the span to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError {
    /// JSON pointer into the body, `/mode`.
    pub pointer: String,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

/// Why a resource that is waited for does not become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReadyReason {
    /// In words.
    pub words: String,
    /// Waiting does not help.
    pub hopeless: bool,
}

/// A resource kind: pure functions over desired resources and answers. Which target it is must make
/// no difference: targets with equal resources and answers share one plan.
pub trait ResourceKind: Sync {
    /// The word in a module's manifest and in addresses: `file`, `link`, `kernel_module`.
    fn name(&self) -> &'static str;

    /// The name of the resource in its address, from the body: a file's path, a link's netdev.
    fn address_name(&self, body: &Value) -> Option<String>;

    /// Which kind of target has such resources.
    fn target_kind(&self) -> TargetKind {
        TargetKind::Host
    }

    /// The segments of its address after the target.
    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        Some(vec![self.name().to_owned(), self.address_name(body)?])
    }

    /// The type of its bodies.
    fn body_type(&self) -> BodyType;

    /// All that is wrong with the body.
    fn check(&self, body: &Value) -> Vec<BodyError> {
        self.body_type().check(body)
    }

    /// What has to be read to compare the resource. Must not depend on any observation: all reads
    /// of a host travel at once.
    fn reads(&self, resource: &DesiredResource) -> Vec<Read>;

    /// What has to be read to undo the resource.
    fn reads_to_undo(&self, applied: &DesiredResource) -> Vec<Read> {
        self.reads(applied)
    }

    /// The part of its answers that it is compared with, where an answer is about many things (a
    /// port of a switch); nothing for all of them.
    fn part<'a>(&self, _resource: &'a DesiredResource) -> Option<&'a str> {
        None
    }

    /// Compares the resource with the answers of its target.
    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff;

    /// Compares the resource where `earlier`, an earlier declaration of it, was applied or begun:
    /// what that made, this one does not declare, and was not there `before` us is to go. Only
    /// kinds whose resources name many things have more to do than in `diff`.
    fn diff_after(
        &self,
        resource: &DesiredResource,
        _earlier: &DesiredResource,
        _before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        self.diff(resource, answers)
    }

    /// The body that stands for all that was applied, and for what was begun after it and did not
    /// complete; nothing for kinds that go by what was applied alone, and where no body may have
    /// both.
    fn join_bodies(&self, applied: &Value, begun: &Value) -> Option<Value> {
        let joined = join_open_parts(self.open_fields(), self.open_maps(), applied, begun)?;
        self.check(&joined).is_empty().then_some(joined)
    }

    /// The resource was taken out of the spec: what restores the time before our first change
    /// (`before`, as `diff` gave it then), or removes what we brought. Attributes: what should be
    /// there afterwards, and what is now.
    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff;

    /// False where this version does not know the form in which `before` is written; asked only
    /// where something was recorded.
    fn can_read_before(&self, _before: &Value) -> bool {
        true
    }

    /// What undoing needs once another desired state of the resource was applied over the first:
    /// `first` was there before our first change, `now` right before this one. Only kinds whose
    /// resources touch more or less of the target have more to remember than the first.
    fn remembered(&self, first: &Value, _now: &Value) -> Value {
        first.clone()
    }

    /// What a declaration that was applied earlier left behind: its attributes, desired as they
    /// were left. The answers are to the reads of the present declaration.
    fn left(&self, applied: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        self.diff(applied, answers)
    }

    /// An attribute that does not count as in sync right after our own actions, and how it reads
    /// until it does. A plan takes it as it is.
    fn unsteady(
        &self,
        _resource: &DesiredResource,
        _answers: &ReadResults,
    ) -> Option<(&'static str, Reading)> {
        None
    }

    /// True where undoing leaves what somebody changed since as it is.
    fn undo_keeps_changes(&self) -> bool {
        false
    }

    /// Safe to run again after a crash in the middle.
    fn convergent(&self) -> bool {
        true
    }

    /// Safe to run again after a crash in the middle, where the resource itself may say so.
    fn is_convergent(&self, _resource: &DesiredResource) -> bool {
        self.convergent()
    }

    /// True where only a boot brings into effect what is set: before a reboot of the target it is
    /// set as it is to be.
    fn takes_effect_at_boot(&self) -> bool {
        false
    }

    /// True where the resource itself asks for an automatic rollback unless the host answers after
    /// the change.
    fn needs_rollback_timer(&self, _resource: &DesiredResource) -> bool {
        false
    }

    /// Fields of the body that may be left out, which leaves what they stand for as it is.
    fn open_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Maps of the body of which an entry that is left out is left as it is.
    fn open_maps(&self) -> &'static [&'static str] {
        &[]
    }

    /// True when what was applied last is what is desired, so that there is nothing new to
    /// remember.
    fn is_same_resource(&self, applied: &DesiredResource, resource: &DesiredResource) -> bool {
        applied.digest() == resource.digest()
    }

    /// False where the resource brings its own read (a probe), another than what was applied last:
    /// the actual state then says nothing of what was left behind.
    fn has_identical_reads(&self, _applied: &DesiredResource, _resource: &DesiredResource) -> bool {
        true
    }

    /// True where a text of the body, by its JSON pointer, may name a secret: where the kind brings
    /// it to the host without showing it in a process list or a file that others can read, and
    /// compares it by its seal or not at all.
    fn may_hold_secret(&self, _pointer: &str) -> bool {
        false
    }

    /// True where the target itself records what of such resources is ours: removal goes by that,
    /// also for what was found in sync.
    fn knows_its_own(&self) -> bool {
        false
    }

    /// True where a step for this resource brings what others have to be in or of
    /// (`Lacking::what`), or may well do so.
    fn may_bring(&self, _resource: &DesiredResource, _needed: &str) -> bool {
        false
    }

    /// True where the hosts' own steps wait for it: their gates need what it waits for.
    fn comes_before_hosts(&self, _resource: &DesiredResource) -> bool {
        false
    }

    /// True where a resource has to know of which spec's cluster it is: it stands in the body as
    /// `cluster`.
    fn names_cluster(&self) -> bool {
        false
    }

    /// What to read besides while the resource is waited for: why it does not become ready.
    fn troubles(&self, _resource: &DesiredResource) -> Vec<Read> {
        Vec::new()
    }

    /// The reason in those reads.
    fn trouble(
        &self,
        _resource: &DesiredResource,
        _answers: &ReadResults,
    ) -> Option<NotReadyReason> {
        None
    }

    /// What an API server has to allow for applying a resource, or for undoing it, apart from its
    /// reads.
    fn changes(&self, _resource: &DesiredResource, _removal: bool) -> Vec<(ObjectName, ApiVerb)> {
        Vec::new()
    }

    /// What an API server has to allow besides, for every read of it, each with the reason.
    fn rights(&self, _resource: &DesiredResource) -> Vec<(Right, String)> {
        Vec::new()
    }

    /// Kinds whose resources of the same target come first, besides what a module's `after` says.
    fn after_kinds(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Every kind that railwright knows.
pub fn list_resource_kinds() -> &'static [&'static dyn ResourceKind] {
    &[
        &super::bond::Bond,
        &super::command::CommandResource,
        &super::configfs_value::ConfigfsValue,
        &super::console_step::ConsoleStep,
        &super::file::File,
        &super::firmware_setting::FirmwareSetting,
        &super::helm_release::HelmRelease,
        &super::interrupt_affinity::InterruptAffinity,
        &super::json_in_configmap::JsonInConfigMap,
        &super::kernel_module::KernelModule,
        &super::kernel_module_build::KernelModuleBuild,
        &super::kernel_parameter::KernelParameter,
        &super::kubernetes_object::KubernetesObject,
        &super::kubernetes_state::KubernetesState,
        &super::link::Link,
        &super::link_ecn::LinkEcn,
        &super::link_qos::LinkQos,
        &super::netdev_name::NetdevName,
        &super::node_allocatable::NodeAllocatable,
        &super::node_field::LABEL,
        &super::node_field::TAINT,
        &super::node_probe::NodeProbe,
        &super::package::Package,
        &super::package_repository::PackageRepository,
        &super::pci_setting::PciSetting,
        &super::platform_feature::PlatformFeature,
        &super::rdma_link::RdmaLink,
        &super::switch::buffer::SwitchBuffer,
        &super::switch::ecn::SwitchEcn,
        &super::switch::port::SwitchPort,
        &super::switch::qos::SwitchQos,
        &super::sysctl::Sysctl,
        &super::systemd_unit::SystemdUnit,
        &super::vlan::Vlan,
    ]
}

/// The kind of this name.
pub fn kind_named(name: &str) -> Option<&'static dyn ResourceKind> {
    list_resource_kinds()
        .iter()
        .copied()
        .find(|kind| kind.name() == name)
}
