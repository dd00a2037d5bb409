import CommandLineTool
import Gateway
import Glibc
import HTTPTransport

@main
struct Main {
    static func main() async {
        let environment = CommandEnvironment(
            programName: CommandLine.arguments.first ?? "wakegate",
            runGateway: { try await GatewayProcess.run($0, source: $1, onReady: $2, onNews: $3) },
            makeCertificates: DevelopmentCertificates.make,
            signES256: { try ProviderKey.sign($0, keyFile: $1) }
        )
        // A reader that goes away is seen by the write that fails.
        _ = signal(SIGPIPE, SIG_IGN)
        exit(await CommandLineTool.run(Array(CommandLine.arguments.dropFirst()), environment: environment))
    }
}
