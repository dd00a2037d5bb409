extension CommandDefinition {
    package static let size = CommandDefinition(
        "size",
        "compute how large a database and its gateways are to be",
        options: [
            OptionDefinition(
                "--devices",
                "N",
                "how many devices there are",
                value: .integer(1...10_000_000_000),
                isRequired: true
            ),
            OptionDefinition(
                "--rate",
                "R",
                "pushes a second, at the peak",
                value: .integer(1...100_000_000),
                isRequired: true
            ),
            OptionDefinition("--payload", "B", "bytes of a payload; default: 200", value: .integer(0...4096)),
            OptionDefinition("--history", "DAYS", "days of the delivery log; default: 7", value: .integer(0...3650)),
        ],
        example: "wakegate size --devices 10000000 --rate 5000",
        notes: [
            """
            For gateways that share a database of PostgreSQL. It computes from what was measured; what a line rests on
            is in the article "Sizing a cluster". Cores are planned to be half busy, and a third of each disk is free.
            No gateway is asked.
            """
        ],
        run: SizeCommand.run
    )
}

/// `wakegate size`.
enum SizeCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        var load = ClusterSize.Load(
            devices: Double(parsed.integer("--devices") ?? 0),
            rate: Double(parsed.integer("--rate") ?? 0)
        )
        if let payload = parsed.integer("--payload") { load.payload = Double(payload) }
        if let days = parsed.integer("--history") { load.history = Double(days) }
        Console.out(SizeText.text(ClusterSize(load)))
        return 0
    }
}
