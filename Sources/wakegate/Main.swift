import CommandLineTool
import Glibc

@main
struct Main {
    static func main() async {
        let environment = CommandEnvironment(
            programName: CommandLine.arguments.first ?? "wakegate",
            runGateway: { _, _ in throw CommandFailure(.failed, "this build has no gateway yet") },
            makeCertificates: { _ in throw CommandFailure(.failed, "this build has no gateway yet") }
        )
        // A reader that goes away is seen by the write that fails.
        _ = signal(SIGPIPE, SIG_IGN)
        exit(await CommandLineTool.run(Array(CommandLine.arguments.dropFirst()), environment: environment))
    }
}
