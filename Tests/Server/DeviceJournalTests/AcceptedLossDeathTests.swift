import Engine
import Storage
import Testing
import WakeGateTestKit

@Suite("A start that accepts a loss, and is cut off", .timeLimit(.minutes(15)))
struct AcceptedLossDeathTests {
    /// The last operations of such a start, in which what is lost was given up already.
    private static let lastOperations = 4

    private func begin(_ disk: SimulatedDisk, acceptsLoss: Bool) throws -> StoreLoss? {
        let journal = try Journal(
            path: FaultSubject.path,
            vfs: disk.vfsName,
            acceptsLoss: acceptsLoss,
            syncFolder: { folder throws(StoreError) in
                guard disk.syncFolder() else { throw StoreError(message: "The folder of \(folder) cannot be synced.") }
            }
        )
        try journal.load { _, _ in }
        return try journal.beginTellingLoss()
    }

    /// A journal of six commits whose log cannot be read; the first three are in the file, or none.
    private func makeLoss(_ disk: SimulatedDisk, isCopied: Bool) throws {
        let subject = try FaultSubject(disk)
        _ = try subject.store.loadAll()
        try subject.store.begin()
        for number in 0..<6 {
            try subject.store.commit([RecordKey(.clock): [UInt8(number)]])
            if isCopied, number == 2 { try subject.checkpoint() }
        }
        disk.killProcess()
        for offset in 0..<32 { disk.damage("\(FaultSubject.path)-wal", at: offset) }
    }

    @Test(
        "What it has not given up yet the next start misses again",
        arguments: [SimulatedDisk.Fault.kill, .powerLoss, .ioError, .noSpace],
        [false, true]
    )
    func cutOff(fault: SimulatedDisk.Fault, isCopied: Bool) throws {
        var firstGivenUp: Int?
        var operations = 0
        for number in 0... {
            let disk = SimulatedDisk()
            try self.makeLoss(disk, isCopied: isCopied)
            #expect(throws: StoreError.self) { try self.begin(disk, acceptsLoss: false) }
            disk.failOperation(number, fault)
            let loss = try? self.begin(disk, acceptsLoss: true)
            guard disk.metFault else {
                #expect(loss != nil)
                break
            }
            operations = number + 1
            disk.killProcess()
            disk.count(.changes)
            if firstGivenUp == nil, (try? self.begin(disk, acceptsLoss: false)) != nil { firstGivenUp = number }
        }
        #expect(operations > 0)
        #expect(operations - (firstGivenUp ?? operations) <= Self.lastOperations, "\(operations) operations")
    }
}
