import Gateway
import Testing

@Suite("What fault rules put off")
struct FaultAgendaTests {
    @Test("Items come when they are due, the earliest first, those of one moment as they came")
    func order() {
        var agenda = FaultAgenda<Int>()
        #expect(agenda.nextDueAt == nil)
        let dues: [Int64] = [30, 10, 20, 10, 40, 20, 10]
        let areTaken = dues.enumerated().map { agenda.add($0, dueAt: $1) }
        #expect(areTaken.allSatisfy { $0 })
        #expect(agenda.nextDueAt == 10)
        let early = agenda.takeDue(now: 9)
        #expect(early == nil)
        var taken: [Int] = []
        while let item = agenda.takeDue(now: 20) { taken.append(item) }
        #expect(taken == [1, 3, 6, 2, 5])
        #expect(agenda.nextDueAt == 30)
        while let item = agenda.takeDue(now: .max) { taken.append(item) }
        #expect(taken == [1, 3, 6, 2, 5, 0, 4])
    }

    @Test("What is forgotten does not come, and the rest comes in order")
    func remove() {
        var agenda = FaultAgenda<Int>()
        let areTaken = (0..<100).map { agenda.add($0, dueAt: Int64($0 * 37 % 100)) }
        #expect(areTaken.allSatisfy { $0 })
        agenda.remove { $0 % 3 == 0 }
        var taken: [Int] = []
        while let item = agenda.takeDue(now: .max) { taken.append(item) }
        #expect(taken == (0..<100).filter { $0 % 3 != 0 }.sorted { $0 * 37 % 100 < $1 * 37 % 100 })
    }

    @Test("No more is put off than there is room for")
    func bounded() {
        var agenda = FaultAgenda<Int>()
        let areTaken = (0...FaultAgenda<Int>.itemsMax).map { agenda.add($0, dueAt: Int64($0 * 7919 % 997)) }
        #expect(areTaken.filter { $0 }.count == FaultAgenda<Int>.itemsMax)
        #expect(areTaken.last == false)
        var last: Int64 = -1
        var count = 0
        while let due = agenda.nextDueAt, agenda.takeDue(now: .max) != nil {
            #expect(due >= last)
            last = due
            count += 1
        }
        #expect(count == FaultAgenda<Int>.itemsMax)
    }
}
