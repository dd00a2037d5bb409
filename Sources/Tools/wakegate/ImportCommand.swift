package import CommandLineTool
import Engine
import Gateway
import Platform

extension CommandDefinition {
    package static let importState = CommandDefinition(
        "import",
        "move the state of a gateway into a shared database",
        options: [
            OptionDefinition("--from STATE", "the state folder; its gateway must have ended", isRequired: true),
            OptionDefinition("--config FILE", "the configuration in JSON5, whose `store` names the database"),
            .set(
                "set any configuration key, such as store=postgresql:///wakegate",
                GatewayConfiguration.keys.map(\.name)
            ),
        ],
        example: "wakegate import --config /etc/wakegate/wakegate.json5 --from /var/lib/wakegate",
        notes: """
            Devices, waiting pushes, background tasks, budgets, counters and policy versions are moved into the
            database, which must have none of the state's topics. Then the delivery log is moved; you can start gateways
            when the first line about it appears. Wakes in flight are lost as at a restart. An interrupted import
            resumes when you run it again; a state can be moved once. The state folder does not change: token.key,
            token.revoked and certificates remain in use; copy them to every other gateway. Never start a gateway with
            store: "sqlite" on it again.
            """,
        run: ImportCommand.run
    )
}

/// `wakegate import`.
enum ImportCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let from = parsed.text("--from") ?? ""
        let configuration = try ServeCommand.configuration(parsed, file: parsed.text("--config"))
        let faults = configuration.databaseFaults()
        if !faults.isEmpty { throw CommandFailure(.badConfiguration, ServeCommand.message(faults)) }
        guard let database = configuration.storeSettings else {
            throw CommandFailure(
                .badConfiguration,
                "store names no database; write store: \(PostgresAddress.requirement) in the configuration"
            )
        }
        guard FileSystem.exists(CommandFile.absolute(from)) else {
            throw .failed("the folder \(from) does not exist; name the state folder with --from STATE")
        }
        // The lock is held until this process ends. No gateway can then start on the folder during the import.
        let folder: StateFolder
        do throws(CommandFailure) { folder = try StateFolder(from) } catch {
            throw .failed(error.message.replacing("--state DIR", with: "--from STATE"))
        }
        do throws(StoreError) {
            let moved = try StateImport.run(from: folder.path, configuration, to: database) { part, moved, all in
                Console.error("wakegate: \(moved) of \(all) \(part.rawValue) moved")
            }
            Console.out(moved)
            return 0
        } catch { throw .failed(error.message) }
    }
}
