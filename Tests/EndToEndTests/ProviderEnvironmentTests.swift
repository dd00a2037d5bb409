import Testing

@Suite("Keys for one environment of APNs", .serialized, .timeLimit(.minutes(15)))
struct ProviderEnvironmentTests {
    @Test("A key of the other environment is refused, and a key of the same one or of both is accepted")
    func environment() throws {
        let asking = try AskingGateway(["--set", "environment=development"])
        try asking.addKey("OTHER00000", environment: "production")
        try asking.addKey("OWN0000000", environment: "development")
        try asking.addKey("BOTH000000")
        let team = AskingGateway.team
        #expect(
            try asking.key(["list"]).output.split(separator: "\n") == [
                "BOTH000000  team \(team)  all topics", "OTHER00000  team \(team)  all topics  production",
                "OWN0000000  team \(team)  all topics  development",
            ]
        )
        func push(_ keyID: String) throws -> String {
            try asking.push(String(repeating: "e7", count: 32), topic: "com.example.environment", keyID: keyID)
        }
        for name in ["OWN0000000", "BOTH000000"] {
            try asking.gateway.eventually("a push with \(name)") { try push(name).hasPrefix("200") }
        }
        try asking.gateway.eventually("OTHER is known") { try push("OTHER00000") == "403 BadEnvironmentKeyIdInToken" }
        #expect(try asking.gateway.stats().integer("pushes", "rejected", "BadEnvironmentKeyIdInToken") == 1)
    }
}
