/// Every command of the program, in the order the help lists them.
package enum CommandTable {
    package static let all: [CommandDefinition] = [
        .dev, .serve, .worker, .push, .stats, .deviceRegister, .deviceRemove, .deviceConditions, .keyAdd, .keyList,
        .keyRemove, .tokenIssue, .tokenRevoke, .backup, .reload, .faultsList, .faultsSet, .faultsClear,
        .simulate, .completion { Self.all }, .manual { Self.all },
    ]
}
