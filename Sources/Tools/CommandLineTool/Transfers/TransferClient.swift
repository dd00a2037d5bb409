import BackgroundTransfers
import Wire

/// The agent and the session that a command line names.
struct TransferClient {
    let session: BackgroundSession

    /// - Throws: for a session or an agent that is none.
    init(
        _ parsed: ParsedCommand,
        _ configuration: BackgroundSessionConfiguration = BackgroundSessionConfiguration()
    ) throws(CommandFailure) {
        do throws(BackgroundTransferError) {
            self.session = try BackgroundSession(
                parsed.arguments[0],
                configuration,
                agent: parsed.text("--agent"),
                triesMax: 1
            )
        } catch {
            throw Self.failure(error)
        }
    }

    /// One of the arguments as a transfer's name.
    static func transfer(_ text: String) throws(CommandFailure) -> BackgroundTransferID {
        guard let id = BackgroundTransferID(text) else {
            throw .usage(
                "TRANSFER is \"\(text)\"; write the 32 hexadecimal digits that `wakegate transfer list SESSION` shows"
            )
        }
        return id
    }

    /// The failure to show for an error of the library.
    static func failure(_ error: BackgroundTransferError) -> CommandFailure {
        let status: CommandFailure.Status =
            switch error.code {
            case .noAgent: .noService
            case .notPermitted: .refusedCredential
            case .badArgument: .badUsage
            default: .failed
            }
        return CommandFailure(status, error.message)
    }

    /// Does what may go wrong in the library's words, and says it in those of the program.
    static func call<Value: Sendable>(
        _ body: () async throws(BackgroundTransferError) -> Value
    ) async throws(CommandFailure) -> Value {
        do throws(BackgroundTransferError) {
            return try await body()
        } catch {
            throw self.failure(error)
        }
    }
}
