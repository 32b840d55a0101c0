//! What every resource kind can do, and the list of kinds.

use super::body::BodyType;
use super::joined_body::join_open_parts;
use super::kubernetes_object::access::{ApiVerb, Right};
use super::kubernetes_object::request::ObjectName;
use super::{Assessment, DesiredResource, Read, ReadResults, Reading};
use railwright_base::TargetKind;
use serde_json::Value;

/// What is wrong in a wish's body; the module loader puts the span to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError {
    /// JSON pointer into the body, `/mode`.
    pub pointer: String,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

/// Why a wish that is waited for does not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReadyReason {
    /// In words.
    pub words: String,
    /// Waiting does not help.
    pub hopeless: bool,
}

/// A resource kind: pure functions over wishes and answers. Which target it is must make no
/// difference: what is planned for one target is the plan of all that want and say the same.
pub trait ResourceKind: Sync {
    /// The word in a module's manifest and in addresses: `file`, `link`, `kernel_module`.
    fn name(&self) -> &'static str;

    /// The name of the resource in its address, from the body: a file's path, a link's netdev.
    fn address_name(&self, body: &Value) -> Option<String>;

    /// What sort of target has such resources.
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

    /// What has to be read to judge the wish. Must not depend on any observation: all reads of a
    /// host travel at once.
    fn reads(&self, wish: &DesiredResource) -> Vec<Read>;

    /// What has to be read to take the wish back.
    fn reads_to_undo(&self, applied: &DesiredResource) -> Vec<Read> {
        self.reads(applied)
    }

    /// The part of its answers that it is judged by, where an answer is about many things (a port
    /// of a switch); nothing for all of them.
    fn part<'a>(&self, _wish: &'a DesiredResource) -> Option<&'a str> {
        None
    }

    /// Judges the wish by the answers of its target.
    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment;

    /// Judges the wish where `earlier`, another wish of the resource, was applied or begun before it:
    /// what that made, this one does not want, and was not there `before` us is to go. Only kinds
    /// whose wishes name many things have more to do than for the wish alone.
    fn assess_after(
        &self,
        wish: &DesiredResource,
        _earlier: &DesiredResource,
        _before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        self.assess(wish, answers)
    }

    /// The body that stands for all that was applied, and for what was begun after it and did not
    /// come through; nothing for kinds that go by what was applied alone, and where no wish may have
    /// both.
    fn join_bodies(&self, applied: &Value, begun: &Value) -> Option<Value> {
        let joined = join_open_parts(self.open_fields(), self.open_maps(), applied, begun)?;
        self.check(&joined).is_empty().then_some(joined)
    }

    /// The wish was taken out of the spec: what restores the time before our first change
    /// (`before`, as `assess` gave it then), or removes what we brought. Attributes: what should be
    /// there afterwards, and what is now.
    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment;

    /// False where this version does not know the form in which `before` is written; asked only
    /// where something was recorded.
    fn can_read_before(&self, _before: &Value) -> bool {
        true
    }

    /// What undoing needs once another wish of the same resource was applied over the first:
    /// `first` was there before our first change, `now` right before this one. Only kinds whose
    /// wishes touch more or less of the target have more to remember than the first.
    fn remembered(&self, first: &Value, _now: &Value) -> Value {
        first.clone()
    }

    /// What a wish that was applied earlier left behind: its attributes, wanted as they were left.
    /// The answers are to the questions of the wish of now.
    fn left(&self, applied: &DesiredResource, answers: &ReadResults) -> Assessment {
        self.assess(applied, answers)
    }

    /// An attribute that does not count as in sync right after our own actions, and how it reads until
    /// it does. A plan takes it as it is.
    fn unsteady(
        &self,
        _wish: &DesiredResource,
        _answers: &ReadResults,
    ) -> Option<(&'static str, Reading)> {
        None
    }

    /// True where taking back leaves what somebody changed since as it is.
    fn undo_keeps_changes(&self) -> bool {
        false
    }

    /// Safe to run again after a crash in the middle.
    fn convergent(&self) -> bool {
        true
    }

    /// Safe to run again after a crash in the middle, where the wish itself may say so.
    fn is_convergent(&self, _wish: &DesiredResource) -> bool {
        self.convergent()
    }

    /// True where the wish itself asks that its change is taken back unless the host answers after
    /// it.
    fn is_guarded(&self, _wish: &DesiredResource) -> bool {
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

    /// True when what was applied last and what is wished are the same wish, so that there is
    /// nothing new to remember.
    fn is_same_wish(&self, applied: &DesiredResource, wish: &DesiredResource) -> bool {
        applied.digest() == wish.digest()
    }

    /// False where the wish brings its own question (a probe) and asks another than what was
    /// applied last: what is found then says nothing of what was left behind.
    fn asks_alike(&self, _applied: &DesiredResource, _wish: &DesiredResource) -> bool {
        true
    }

    /// True where a text of the body, by its JSON pointer, may name a secret: where the kind brings
    /// it to the host without showing it in a process list or a file that others can read, and
    /// compares it by its seal or not at all.
    fn may_hold_secret(&self, _pointer: &str) -> bool {
        false
    }

    /// True where the target itself says what of such resources is ours: removal goes by that, also
    /// for what was found as wished.
    fn knows_its_own(&self) -> bool {
        false
    }

    /// True where a step for this wish brings what others have to be in or of (`Lacking::what`), or
    /// may well do so.
    fn may_bring(&self, _wish: &DesiredResource, _needed: &str) -> bool {
        false
    }

    /// True where the hosts' own steps wait for it: what proves them needs what it waits for.
    fn comes_before_hosts(&self, _wish: &DesiredResource) -> bool {
        false
    }

    /// True where a wish has to know of which spec's cluster it is: it stands in the body as
    /// `cluster`.
    fn names_cluster(&self) -> bool {
        false
    }

    /// What to read besides while the wish is waited for: why it does not come about.
    fn troubles(&self, _wish: &DesiredResource) -> Vec<Read> {
        Vec::new()
    }

    /// What those say.
    fn trouble(&self, _wish: &DesiredResource, _answers: &ReadResults) -> Option<NotReadyReason> {
        None
    }

    /// What an API server has to allow for bringing a wish about, or for taking it back; what is
    /// read for it aside.
    fn changes(&self, _wish: &DesiredResource, _removal: bool) -> Vec<(ObjectName, ApiVerb)> {
        Vec::new()
    }

    /// What an API server has to allow besides, for every look at it, each with the reason.
    fn rights(&self, _wish: &DesiredResource) -> Vec<(Right, String)> {
        Vec::new()
    }

    /// Kinds whose wishes of the same target come first, besides what a module's `after` says.
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
