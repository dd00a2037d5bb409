/// Every command of the program, in the order the help lists them.
package enum CommandTable {
    package static let all: [CommandDefinition] = [
        .dev, .serve, .worker, .push, .stats, .deviceRegister, .deviceRemove, .deviceConditions, .keyAdd, .keyList,
        .keyRemove, .tokenIssue, .tokenRevoke, .backup, .reload, .faultsList, .faultsSet, .faultsClear,
        .simulate, .completion, .manual,
    ]

    /// The options of the program itself.
    package static let options = [
        OptionDefinition("--help", "", "show this help; after a command, the help of that command"),
        OptionDefinition("--version", "", "show the version"),
    ]
}
