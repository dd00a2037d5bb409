package import Access

extension GatewayConfiguration {
    /// The files of the authorities that client certificates are signed by; nil when nobody is asked for one.
    package var clientTrustFiles: ClientTrustFiles? {
        self.clientCAFile.map { ClientTrustFiles(authorities: $0, revocations: self.clientCRLFile) }
    }

    /// What checks the tokens of workers and operators, which has read nothing yet.
    ///
    /// - Parameter onTrouble: hears, once, why tokens cannot be checked.
    package func tokenCheck(onTrouble: @escaping @Sendable (String) -> Void) -> TokenCheck {
        TokenCheck(
            folder: self.stateFolder,
            asksAnybody: self.asksForTokens,
            asksForCertificates: self.clientCAFile != nil,
            isReachable: !(self.edge.addresses + self.plain.addresses).allSatisfy { ListenSetting.isLocal($0) },
            mayWorkersGoUnasked: self.mayWorkersGoUnasked,
            onTrouble: onTrouble
        )
    }
}
