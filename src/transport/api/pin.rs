//! Whose certificate is taken: the very one that is pinned, whatever it says of names and days, or
//! one that a pinned authority signed for the address and for today.

use crate::TransportError;
use railwright_base::Fingerprint;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_system::files;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A file of certificates larger than this is none.
const FILE_LIMIT: u64 = 1 << 20;

/// What pins a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificatePin {
    /// Its fingerprint, in the spec itself.
    Fingerprint(Fingerprint),
    /// A PEM file with it, or with the authority that signed it.
    File(PathBuf),
}

impl CertificatePin {
    /// As the spec has it: a fingerprint, or a path that is made absolute. What looks like a
    /// fingerprint and is none pins nothing.
    pub fn of(text: &str, absolute: impl FnOnce(&str) -> String) -> Self {
        match Fingerprint::digits_of(text).and_then(Fingerprint::parse) {
            Some(fingerprint) => CertificatePin::Fingerprint(fingerprint),
            None => CertificatePin::File(PathBuf::from(absolute(text))),
        }
    }

    fn words(&self) -> String {
        match self {
            CertificatePin::Fingerprint(fingerprint) => format!("{fingerprint} in the spec"),
            CertificatePin::File(file) => file.display().to_string(),
        }
    }
}

/// What is pinned, read.
#[derive(Debug)]
enum CertificatePins {
    Fingerprint(Fingerprint),
    Certificates {
        exact: Vec<CertificateDer<'static>>,
        /// None where none of them can be an authority.
        signed: Option<Arc<WebPkiServerVerifier>>,
    },
    /// There is no such file: nobody said anything yet.
    Nothing,
}

/// Checks the certificate of one switch, and remembers what it was shown.
#[derive(Debug)]
pub(super) struct Verifier {
    switch: String,
    address: String,
    pin: CertificatePin,
    pins: CertificatePins,
    provider: Arc<CryptoProvider>,
    refused: Mutex<Option<TransportError>>,
}

impl Verifier {
    /// For a switch at an address, for messages; reads the file that pins.
    pub fn new(
        switch: &str,
        address: String,
        pin: &CertificatePin,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TransportError> {
        let pins = match pin {
            CertificatePin::Fingerprint(fingerprint) => CertificatePins::Fingerprint(*fingerprint),
            CertificatePin::File(file) => load_certificate_pins(switch, file, &provider)?,
        };
        Ok(Verifier {
            switch: switch.to_owned(),
            address,
            pin: pin.clone(),
            pins,
            provider,
            refused: Mutex::default(),
        })
    }

    /// Why a certificate was refused, if one was.
    pub fn refused(&self) -> Option<TransportError> {
        lock_ignoring_poison(&self.refused).clone()
    }

    /// Why this one is refused; nothing where it is taken.
    fn check_certificate(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Option<TransportError> {
        let fingerprint = Fingerprint::of(shown);
        let reason = match &self.pins {
            CertificatePins::Fingerprint(pinned) if *pinned == fingerprint => return None,
            CertificatePins::Fingerprint(_) => String::new(),
            CertificatePins::Certificates { exact, .. }
                if exact.iter().any(|one| one.as_ref() == shown.as_ref()) =>
            {
                return None;
            }
            CertificatePins::Certificates { signed: None, .. } => String::new(),
            CertificatePins::Certificates {
                signed: Some(signed),
                ..
            } => match signed.verify_server_cert(shown, between, name, &[], now) {
                Ok(_) => return None,
                Err(error) => describe_certificate_error(&error),
            },
            CertificatePins::Nothing => return Some(self.unknown(fingerprint)),
        };
        let (switch, address) = (self.switch.clone(), self.address.clone());
        Some(TransportError::CertificateRefused {
            switch,
            address,
            fingerprint: fingerprint.to_string(),
            pin: self.pin.words(),
            reason,
        })
    }

    fn unknown(&self, fingerprint: Fingerprint) -> TransportError {
        TransportError::CertificateUnknown {
            switch: self.switch.clone(),
            address: self.address.clone(),
            fingerprint: fingerprint.to_string(),
            file: self.pin.words(),
        }
    }
}

fn load_certificate_pins(
    switch: &str,
    file: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<CertificatePins, TransportError> {
    let bytes = match files::read_ordinary(file, FILE_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(CertificatePins::Nothing),
        Err(error) => {
            let why = format!("cannot be read: {error}");
            return Err(new_unusable_pin_error(switch, file, &why));
        }
    };
    let exact: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            new_unusable_pin_error(switch, file, &format!("is no PEM file: {error}"))
        })?;
    if exact.is_empty() {
        let why = "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)";
        return Err(new_unusable_pin_error(switch, file, why));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(exact.iter().cloned());
    let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .ok();
    Ok(CertificatePins::Certificates { exact, signed })
}

fn new_unusable_pin_error(switch: &str, file: &Path, why: &str) -> TransportError {
    TransportError::Local {
        reason: format!("{switch}: the certificate {} {why}", file.display()).into(),
    }
}

/// In the words of a person; nothing where it is simply another certificate.
fn describe_certificate_error(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => String::new(),
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "which has expired".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "which is not valid yet".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "which the pinned authority signed for another name".to_owned(),
        rustls::Error::InvalidCertificate(CertificateError::Other(_)) => String::new(),
        other => format!("which does not hold: {}", one_line(&other.to_string(), 120)),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.check_certificate(shown, between, name, now) {
            None => Ok(ServerCertVerified::assertion()),
            Some(error) => {
                *lock_ignoring_poison(&self.refused) = Some(error);
                Err(rustls::Error::InvalidCertificate(
                    CertificateError::ApplicationVerificationFailure,
                ))
            }
        }
    }

    // That whoever shows the certificate has its key is verified here: a pin alone would prove
    // nothing.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waited for where connections are made, nothing else would go on, not even the end that
    /// somebody asks for.
    #[test]
    fn a_certificate_that_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        for file in [pipe.as_path(), Path::new("/dev/zero")] {
            let refused = load_certificate_pins("leaf1", file, &provider)
                .map(drop)
                .unwrap_err();
            assert!(
                refused.to_string().contains("no ordinary file"),
                "{refused}"
            );
        }
    }
}
