import HTTPTransport
import Platform
package import Wire

extension GatewayConfiguration {
    /// Returns the faults of combinations of values, each of which is in its range.
    ///
    /// For example, a listener that other machines can reach must be able to authenticate all its callers. Files and
    /// folders that the configuration names are read, too.
    package func faults() -> [ConfigurationFault] {
        self.addressFaults() + self.tlsFaults() + self.clientTrustFaults() + self.providerKeyFaults()
            + self.webhookFaults() + self.databaseFaults()
    }

    private func addressFaults() -> [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        var seen: Set<String> = []
        let listeners = [
            ("edge", self.edge, "127.0.0.1:2197"), ("admin", self.admin, "127.0.0.1:9197"),
            ("plain", self.plain, "127.0.0.1:2198"),
        ]
        for (key, setting, example) in listeners {
            for address in setting.addresses {
                if (try? ListenAddress.parse(address)) == nil {
                    let problem = "\(address) is not an address to listen on"
                    faults.append(ConfigurationFault(key: key, problem: problem, remedy: "set \(key): \"\(example)\""))
                    continue
                }
                if !ListenSetting.isLocal(address), let fault = self.exposure(key, address, example) {
                    faults.append(fault)
                }
                if !address.hasSuffix(":0"), !seen.insert(address).inserted {
                    let problem = "\(address) is listed twice"
                    faults.append(ConfigurationFault(key: key, problem: problem, remedy: "give it another port"))
                }
            }
        }
        if listeners.allSatisfy({ $0.1.isOff }) {
            let fault = ConfigurationFault(
                key: "edge",
                problem: "every listener is off",
                remedy: "set edge: \"127.0.0.1:2197\""
            )
            faults.append(fault)
        }
        return faults
    }

    /// Returns the fault of a listener that other machines can reach although it cannot authenticate every caller, or
    /// would receive tokens in cleartext.
    ///
    /// - `address`: an address that is not local.
    private func exposure(_ key: String, _ address: String, _ example: String) -> ConfigurationFault? {
        // The operator has named the networks of callers; all other callers are refused.
        guard self.callerNetworks.isEmpty else { return nil }
        let problem: String
        var remedy = "set \(key): \"\(example)\""
        if !self.checksTokens {
            problem = "this command does not authenticate its clients"
            remedy += ", or say with --network who may reach it"
        } else if key != "admin", self.providerKeysFolder == nil, self.clientCAFile == nil {
            problem = "without providerKeys or tls.clientCA providers are not authenticated"
            remedy += ", or providerKeys: \"FOLDER\", or tls.clientCA: \"FILE\""
        } else if key != "edge", !self.allowsRemoteCleartext {
            problem = "tokens would cross the network in cleartext"
            remedy += ", or insecure: true if the network is your own"
        } else {
            return nil
        }
        return ConfigurationFault(
            key: key,
            problem: "\(address) is not a loopback address, and \(problem)",
            remedy: remedy
        )
    }

    private func tlsFaults() -> [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        for (key, path) in [("tls.certificate", self.certificateFile), ("tls.key", self.privateKeyFile)] {
            if let path {
                if let reason = FileSystem.unreadable(path) {
                    let problem = "\(path) cannot be read (\(reason))"
                    faults.append(ConfigurationFault(key: key, problem: problem, remedy: "name a readable PEM file"))
                }
            } else if !self.edge.isOff {
                faults.append(
                    ConfigurationFault(
                        key: key,
                        problem: "is missing, and the edge listener needs it",
                        remedy: "name a PEM file, or set edge: \"off\""
                    )
                )
            }
        }
        guard faults.isEmpty, let certificate = self.certificateFile, let key = self.privateKeyFile else {
            return faults
        }
        do throws(TransportError) {
            _ = try TLSContext(certificateChainFile: certificate, privateKeyFile: key)
            return []
        } catch {
            let name = error.code == .privateKey ? "tls.key" : "tls.certificate"
            return [ConfigurationFault(key: name, CredentialError(message: error.message))]
        }
    }

    private func webhookFaults() -> [ConfigurationFault] {
        self.webhooks.sorted { $0.key < $1.key }.flatMap { WebhookFaults(topic: $0.key, webhook: $0.value).all }
    }

    private func clientTrustFaults() -> [ConfigurationFault] {
        guard let files = self.clientTrustFiles else {
            guard self.clientCRLFile != nil else { return [] }
            let remedy = "set tls.clientCA to the file of the authorities whose list it is, or leave it out"
            return [ConfigurationFault(key: "tls.clientCRL", problem: "means nothing alone", remedy: remedy)]
        }
        // The revocation list is checked only if the authorities are valid.
        for (key, files) in [("tls.clientCA", files.withoutRevocations), ("tls.clientCRL", files)] {
            do throws(CredentialError) { _ = try files.read() } catch {
                return [ConfigurationFault(key: key, error)]
            }
        }
        return []
    }

    private func providerKeyFaults() -> [ConfigurationFault] {
        guard let folder = self.providerKeysFolder, (try? ProviderKeyFolder(folder).read()) == nil else { return [] }
        let isThere = FileSystem.exists(folder)
        let problem = isThere ? "\(folder) is not a readable folder" : "\(folder) is missing: no such folder"
        let remedy = "make it, or name the one that `wakegate key add` writes to"
        return [ConfigurationFault(key: "providerKeys", problem: problem, remedy: remedy)]
    }
}
