use posse_core::signal::Signal;
use posse_core::status::{Claim, Source};
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SignalRules {}
#[derive(Debug)]
pub struct Signals;
impl Signals {
    pub fn new(_: &SignalRules) -> Result<Self, crate::BadManifest> {
        Ok(Self)
    }
    pub fn hear(&self, _: &Signal) -> Option<(Source, Claim)> {
        None
    }
    pub fn hook(&self, _: &serde_json::Value) -> Option<(Source, Claim)> {
        None
    }
}
