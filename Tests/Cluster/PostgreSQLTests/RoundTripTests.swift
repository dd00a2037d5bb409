import PostgresStore
import Testing
import WakeGateTestKit
import Wire

@Suite("Round trips of values")
struct RoundTripTests {
    private let client: PostgresClient

    init() throws {
        self.client = try PostgresClient(PostgresAddress(PostgresServer.shared().address()), application: "test")
    }

    /// Sends one parameter of this type and returns the rows that the server returns for it.
    private func back(_ type: String, _ append: (inout PostgresParameters) -> Void) throws -> PostgresRows {
        var parameters = PostgresParameters()
        append(&parameters)
        return try self.client.query("SELECT $1::\(type), $1::\(type)::text, pg_typeof($1)::text", parameters)
    }

    @Test("Integers of each size", arguments: [0, 1, -1, Int64.max, .min, 0x0102_0304_0506_0708])
    func integers(value: Int64) throws {
        #expect(try self.back("int8") { $0.append(value) }.int64(0, 0) == value)
        #expect(try self.back("int8") { $0.append(value) }.text(0, 1) == "\(value)")
        let half = Int32(truncatingIfNeeded: value)
        #expect(try self.back("int4") { $0.append(half) }.int32(0, 0) == half)
        #expect(try self.back("int4") { $0.append(half) }.text(0, 1) == "\(half)")
        let quarter = Int16(truncatingIfNeeded: value)
        #expect(try self.back("int2") { $0.append(quarter) }.int16(0, 0) == quarter)
        #expect(try self.back("int2") { $0.append(quarter) }.text(0, 1) == "\(quarter)")
    }

    @Test("Booleans", arguments: [(true, "true"), (false, "false")])
    func truth(value: Bool, text: String) throws {
        let rows = try self.back("bool") { $0.append(value) }
        #expect(rows.flag(0, 0) == value)
        #expect(rows.text(0, 1) == text)
    }

    @Test("Text", arguments: ["", "a", "Grüße, \u{1F680} 'quoted' \\ \"x\"\n", String(repeating: "x", count: 100_000)])
    func text(value: String) throws {
        let rows = try self.back("text") { $0.append(value) }
        #expect(rows.text(0, 0) == value)
        #expect(!rows.isNull(0, 0))
    }

    @Test("Bytes", arguments: [[], [0], [0xFF, 0, 0x27, 0x5C], Array(repeating: 7, count: 1_000_000)])
    func bytes(value: [UInt8]) throws {
        let rows = try self.back("bytea") { $0.append(value) }
        #expect(rows.bytes(0, 0).array == value)
        #expect(!rows.isNull(0, 0))
        let viewed = try self.back("bytea") { parameters in value.withByteView { parameters.append($0) } }
        #expect(viewed.bytes(0, 0).array == value)
    }

    @Test("Identifiers")
    func identifiers() throws {
        let id = WakeID(random: (0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF))
        let rows = try self.back("uuid") { $0.append(id) }
        #expect(rows.wake(0, 0) == id)
        #expect(rows.text(0, 1) == "00112233-4455-6677-8899-aabbccddeeff")
    }

    @Test("Device tokens are bytes")
    func tokens() throws {
        let token = try #require([UInt8](0..<32).withByteView { DeviceToken(bytes: $0) })
        #expect(try self.back("bytea") { $0.append(token) }.bytes(0, 0).array == [UInt8](0..<32))
        let rows = try self.back("bytea[]") { $0.append([token, token]) }
        #expect(rows.elements(0, 0)?.all == [[UInt8](0..<32), [UInt8](0..<32)])
    }

    @Test("NULL is read as an absent value without bytes")
    func null() throws {
        let rows = try self.back("bytea") { $0.appendNull() }
        #expect(rows.isNull(0, 0))
        #expect(rows.bytes(0, 0).isEmpty)
        #expect(rows.int64(0, 0) == 0)
        let isNone = rows.elements(0, 0) == nil
        #expect(isNone)
    }

    @Test("Arrays of each type", arguments: PostgresElement.allCases)
    func arrays(element: PostgresElement) throws {
        let cases: (type: String, text: String) =
            switch element {
            case .bool: ("bool[]", "{t,NULL,f}")
            case .bytes: ("bytea[]", #"{"\\x00ff",NULL,"\\x"}"#)
            case .int8: ("int8[]", "{\(Int64.min),NULL,7}")
            case .int4: ("int4[]", "{\(Int32.min),NULL,7}")
            case .int2: ("int2[]", "{\(Int16.min),NULL,7}")
            case .text: ("text[]", #"{"a,\"b",NULL,""}"#)
            case .place: ("tid[]", #"{"(70000,3)",NULL,"(0,0)"}"#)
            case .uuid: ("uuid[]", "{00000000-0000-0001-0000-000000000002,NULL,00000000-0000-0003-0000-000000000004}")
            }
        var array = PostgresArray(element)
        switch element {
        case .bool:
            array.append(true)
            array.appendNull()
            array.append(false)
        case .bytes:
            array.append([0, 0xFF])
            array.appendNull()
            array.append([])
        case .int8:
            array.append(Int64.min)
            array.appendNull()
            array.append(Int64(7))
        case .int4:
            array.append(Int32.min)
            array.appendNull()
            array.append(Int32(7))
        case .int2:
            array.append(Int16.min)
            array.appendNull()
            array.append(Int16(7))
        case .text:
            array.append("a,\"b")
            array.appendNull()
            array.append("")
        case .place:
            array.append(RowLocation(block: 70_000, offset: 3))
            array.appendNull()
            array.append(.nowhere)
        case .uuid:
            array.append(WakeID(random: (1, 2)))
            array.appendNull()
            array.append(uuid: (3, 4))
        }
        var parameters = PostgresParameters()
        parameters.append(array)
        let rows = try self.client.query("SELECT $1::\(cases.type), $1::\(cases.type)::text", parameters)
        #expect(rows.text(0, 1) == cases.text)
        #expect(rows.bytes(0, 0).array == array.view.array)
        array.removeAll()
        parameters.removeAll()
        parameters.append(array)
        #expect(try self.client.query("SELECT $1::\(cases.type)::text", parameters).text(0, 0) == "{}")
    }

    @Test("A row's location is read; NULL and other types read as nowhere")
    func places() throws {
        let rows = try self.client.query("SELECT '(70000,3)'::tid, NULL::tid, 7::int8")
        #expect(rows.place(0, 0) == RowLocation(block: 70_000, offset: 3))
        #expect(rows.place(0, 1) == .nowhere)
        #expect(rows.place(0, 2) == .nowhere)
    }

    @Test("Texts as one array")
    func texts() throws {
        #expect(try self.back("text[]") { $0.append(["a", "", "ü"]) }.texts(0, 0) == ["a", "", "ü"])
        #expect(
            try self.client.query("SELECT '{a,NULL}'::text[], '{}'::text[], NULL::text[]").texts(0, 0) == ["a", ""]
        )
        #expect(try self.client.query("SELECT '{}'::text[]").texts(0, 0).isEmpty)
        #expect(try self.client.query("SELECT NULL::text[]").texts(0, 0).isEmpty)
    }

    @Test("Many parameters at a time, used again", arguments: [1, 3])
    func many(rounds: Int) throws {
        var parameters = PostgresParameters()
        for round in 0..<rounds {
            parameters.removeAll()
            for index in 0..<500 { parameters.append(Int64(index + round)) }
            let places = (1...500).map { "$\($0)::int8" }.joined(separator: ",")
            let rows = try self.client.query("SELECT unnest(ARRAY[\(places)])", parameters)
            #expect(rows.count == 500)
            #expect((0..<500).allSatisfy { rows.int64($0, 0) == Int64($0 + round) })
        }
    }

    @Test("A statement says how many rows it changed")
    func changed() throws {
        try self.client.script("CREATE TEMPORARY TABLE changed (x int)")
        #expect(try self.client.query("INSERT INTO changed SELECT generate_series(1, 5)").affectedCount == 5)
        let rows = try self.client.query("UPDATE changed SET x = 0 WHERE x > 2")
        #expect(rows.tag == "UPDATE 3")
        #expect(rows.affectedCount == 3)
        #expect(rows.count == 0)
        #expect(rows.columnCount == 0)
    }

    @Test("A prepared statement is carried out again and again")
    func prepared() throws {
        try self.client.prepare("double", "SELECT $1::int4 * 2")
        var parameters = PostgresParameters()
        for value in Int32(0)..<100 {
            parameters.removeAll()
            parameters.append(value)
            #expect(try self.client.execute("double", parameters).int32(0, 0) == value * 2)
        }
    }
}

@Suite("Arrays in binary")
struct ArrayFormTests {
    private static func words(_ words: [UInt32]) -> [UInt8] {
        words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
    }

    @Test("An array consists of its dimensions, type, count, and elements with their lengths")
    func form() {
        var array = PostgresArray(.int4)
        array.append(Int32(7))
        array.append(Int32(-1))
        #expect(array.view.array == Self.words([1, 0, 23, 2, 1, 4, 7, 4, 0xFFFF_FFFF]))
        #expect(array.count == 2)
    }

    @Test("A NULL is marked at the head and has the length -1")
    func null() {
        var array = PostgresArray(.bytes)
        array.appendNull()
        array.append([0xAB, 0xCD])
        #expect(array.view.array == Self.words([1, 1, 17, 2, 1, 0xFFFF_FFFF, 2]) + [0xAB, 0xCD])
    }

    @Test("A reused array is like a new one", arguments: PostgresElement.allCases)
    func usedAgain(element: PostgresElement) {
        var array = PostgresArray(element)
        let fresh = array.view.array
        #expect(fresh == Self.words([1, 0, element.rawValue, 0, 1]))
        for _ in 0..<1000 { array.appendNull() }
        array.removeAll()
        #expect(array.view.array == fresh)
        #expect(array.count == 0)
    }

    @Test("A written array is read back")
    func read() {
        var array = PostgresArray(.text)
        array.append("a")
        array.appendNull()
        array.append("")
        array.append("ü")
        let elements = PostgresElements(array.view)
        #expect(elements?.count == 4)
        #expect(elements?.all == [Array("a".utf8), nil, [], Array("ü".utf8)])
    }

    @Test("A truncated array yields only complete elements", arguments: 0..<32)
    func cut(count: Int) {
        var array = PostgresArray(.int4)
        array.append(Int32(7))
        array.append(Int32(8))
        let bytes = Array(array.view.array[..<count])
        bytes.withByteView { view in
            let whole = PostgresElements(view)?.all ?? []
            #expect(whole.count == max(0, count - 20) / 8)
            #expect(whole.allSatisfy { $0?.count == 4 })
        }
    }

    @Test(
        "An array that is malformed or not one-dimensional is refused",
        arguments: [
            [], [2, 0, 23, 1, 1, 1, 1, 4, 7], [1, 0, 23, 0x7FFF_FFFF, 1], [1, 0, 23, 0xFFFF_FFFF, 1],
            [0xFFFF_FFFF, 0, 23],
            [1, 0, 23],
        ]
    )
    func none(words: [UInt32]) {
        Self.words(words).withByteView { view in
            let isNone = PostgresElements(view) == nil
            #expect(isNone)
        }
    }
}
