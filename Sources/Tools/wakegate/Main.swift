package import CommandLineTool
import Gateway
import Glibc
import HTTPTransport

@main
struct Main {
    static func main() async {
        // Ignore SIGPIPE: a write to a closed pipe then returns an error.
        _ = signal(SIGPIPE, SIG_IGN)
        let words = Array(CommandLine.arguments.dropFirst())
        exit(await CommandLineTool.run(words, commands: CommandTable.all, commit: wakeGateCommit))
    }
}

/// All commands of the program, in the order of the help.
package enum CommandTable {
    package static let all: [CommandDefinition] = [
        .dev, .serve, .workerList, .worker, .wakeExtend, .transfers,
        .pushList, .pushShow, .push { try ProviderKey.sign($0, keyFile: $1) }, .stats, .doctor, .whatIf, .events,
        .deviceList, .deviceRegister,
        .deviceRemove,
        .deviceConditions, .deviceEvents, .deviceWatch, .deviceLaunch, .deviceDrop, .deviceExpire, .topicList,
        .topicPause, .topicResume,
        .taskSubmit, .taskList, .taskCancel, .taskLaunch, .taskExpire, .taskFinished,
        .transferAdd, .transferList, .transferWait, .transferCancel, .transferTake, .transferSession, .keyAdd, .keyList,
        .keyRemove,
        .tokenIssue, .tokenList, .tokenRevoke, .contextAdd, .contextUse, .contextList, .contextShow, .contextRemove,
        .health, .backup, .importState, .reload, .faultsList, .faultsSet, .faultsClear, .simulate,
        .size, .completion { Self.all }, .manual(of: { Self.all }, keys: KeyManual.manual),
    ]
}
