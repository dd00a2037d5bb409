import Settings

extension OptionDefinition {
    /// Options of every command that talks to a gateway.
    package static let client = [
        OptionDefinition("--gateway", "URL", "the gateway; without it a `wakegate dev` of this folder is found"),
        OptionDefinition("--ca", "FILE", "PEM file of the authority that signed the gateway's certificate"),
        OptionDefinition("--token", "TOKEN", "bearer token to show"),
        OptionDefinition("--token-file", "FILE", "file with that token, which other users' ps does not see"),
        OptionDefinition("--cert", "FILE", "PEM file of the client certificate to show"),
        OptionDefinition("--key", "FILE", "PEM file of that certificate's private key; default: the file of --cert"),
    ]

    /// Options of both servers.
    package static let server = [
        OptionDefinition("--edge", "ADDRESS", "where providers and workers connect; off for none", isRepeatable: true),
        OptionDefinition("--admin", "ADDRESS", "where operators connect; off for none", isRepeatable: true),
        OptionDefinition("--plain", "ADDRESS", "the edge in cleartext, for tests; off for none", isRepeatable: true),
        OptionDefinition("--state", "DIR", "the state folder"),
        OptionDefinition("--accept-loss", "", "start on a journal that lacks what was committed last, once"),
        OptionDefinition(
            "--set",
            "KEY=VALUE",
            "set any configuration key, such as policy.launchInterval=600",
            value: .setting,
            isRepeatable: true,
            words: ConfigurationKey.all.map { "\($0.name)=" }
        ),
    ]
}
