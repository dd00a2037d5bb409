import Engine
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

    /// Sends one parameter of this type and returns the rows that the server returns for it; nil for NULL.
    private func back(_ type: String, _ value: (some PostgresValue)?) throws -> PostgresRows {
        var parameters = PostgresParameters()
        parameters.append(value)
        return try self.client.query("SELECT $1::\(type), $1::\(type)::text, pg_typeof($1)::text", parameters)
    }

    @Test("Integers of each size", arguments: [0, 1, -1, Int64.max, .min, 0x0102_0304_0506_0708])
    func integers(value: Int64) throws {
        #expect(try self.back("int8", value).int64(0, 0) == value)
        #expect(try self.back("int8", value).text(0, 1) == "\(value)")
        let half = Int32(truncatingIfNeeded: value)
        #expect(try self.back("int4", half).int32(0, 0) == half)
        #expect(try self.back("int4", half).text(0, 1) == "\(half)")
        let quarter = Int16(truncatingIfNeeded: value)
        #expect(try self.back("int2", quarter).text(0, 1) == "\(quarter)")
    }

    @Test("Booleans", arguments: [(true, "true"), (false, "false")])
    func truth(value: Bool, text: String) throws {
        let rows = try self.back("bool", value)
        #expect(rows.flag(0, 0) == value)
        #expect(rows.text(0, 1) == text)
    }

    @Test("Text", arguments: ["", "a", "Grüße, \u{1F680} 'quoted' \\ \"x\"\n", String(repeating: "x", count: 100_000)])
    func text(value: String) throws {
        let rows = try self.back("text", value)
        #expect(rows.text(0, 0) == value)
        #expect(!rows.isNull(0, 0))
    }

    @Test("Bytes", arguments: [[], [0], [0xFF, 0, 0x27, 0x5C], Array(repeating: 7, count: 1_000_000)])
    func bytes(value: [UInt8]) throws {
        let rows = try self.back("bytea", value)
        #expect(rows.bytes(0, 0).array == value)
        #expect(!rows.isNull(0, 0))
    }

    @Test("Identifiers")
    func identifiers() throws {
        let id = WakeID(random: (0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF))
        let rows = try self.back("uuid", id)
        #expect(rows.wake(0, 0) == id)
        #expect(rows.text(0, 1) == "00112233-4455-6677-8899-aabbccddeeff")
        let push = APNsID(first: 0x7766_5544_3322_1100, second: 0xFFEE_DDCC_BBAA_9988, upperCase: 0)
        #expect(try self.back("uuid", push).text(0, 1) == "00112233-4455-6677-8899-aabbccddeeff")
    }

    @Test("Device tokens are bytes")
    func tokens() throws {
        let token = try #require([UInt8](0..<32).withByteView { DeviceToken(bytes: $0) })
        #expect(try self.back("bytea", token).bytes(0, 0).array == [UInt8](0..<32))
        let hex = #""\\x\#(token.hex)""#
        #expect(try self.back("bytea[]", PostgresList([token, token])).text(0, 1) == "{\(hex),\(hex)}")
    }

    @Test("NULL is read as an absent value without bytes")
    func null() throws {
        let rows = try self.back("bytea", nil as [UInt8]?)
        #expect(rows.isNull(0, 0))
        #expect(rows.bytes(0, 0).isEmpty)
        #expect(rows.int64(0, 0) == 0)
    }

    @Test("Arrays of each type")
    func arrays() throws {
        func check(_ type: String, _ text: String, _ elements: [some PostgresScalar]) throws {
            let list = PostgresList(elements)
            let rows = try self.back("\(type)[]", list)
            #expect(rows.text(0, 1) == text)
            var buffer = ByteBuffer()
            list.writeBinary(to: &buffer)
            #expect(rows.bytes(0, 0).array == buffer.view.array)
            #expect(try self.back("\(type)[]", PostgresList(Array(elements.prefix(0)))).text(0, 1) == "{}")
        }
        try check("bytea", #"{"\\x00ff","\\x"}"#, [[0, 0xFF], [UInt8]()])
        try check("int8", "{\(Int64.min),7}", [Int64.min, 7])
        try check("int4", "{\(Int32.min),7}", [Int32.min, 7])
        try check("int2", "{\(Int16.min),7}", [Int16.min, 7])
        try check("text", #"{"a,\"b",""}"#, ["a,\"b", ""])
        let places = [RowLocation(block: 70_000, offset: 3), .nowhere]
        try check("tid", #"{"(70000,3)","(0,0)"}"#, places)
        let wakes = [WakeID(random: (1, 2)), WakeID(random: (3, 4))]
        let uuids = "{00000000-0000-0001-0000-000000000002,00000000-0000-0003-0000-000000000004}"
        try check("uuid", uuids, wakes)
    }

    @Test("An array has one element for each item")
    func items() throws {
        var parameters = PostgresParameters()
        parameters.append([3, 1, 2]) { Int64($0) * 10 }
        #expect(try self.client.query("SELECT $1::int8[]::text", parameters).text(0, 0) == "{30,10,20}")
    }

    @Test("A row's location is read; NULL and other types read as nowhere")
    func places() throws {
        let rows = try self.client.query("SELECT '(70000,3)'::tid, NULL::tid, 7::int8")
        #expect(rows.place(0, 0) == RowLocation(block: 70_000, offset: 3))
        #expect(rows.place(0, 1) == .nowhere)
        #expect(rows.place(0, 2) == .nowhere)
    }

    @Test("Many parameters at a time")
    func many() throws {
        var parameters = PostgresParameters()
        for index in 0..<500 { parameters.append(Int64(index)) }
        let places = (1...500).map { "$\($0)::int8" }.joined(separator: ",")
        let rows = try self.client.query("SELECT unnest(ARRAY[\(places)])", parameters)
        #expect(rows.count == 500)
        #expect((0..<500).allSatisfy { rows.int64($0, 0) == Int64($0) })
    }

    @Test("A statement says how many rows it changed")
    func changed() throws {
        try self.client.query("CREATE TEMPORARY TABLE changed (x int)")
        #expect(try self.client.query("INSERT INTO changed SELECT generate_series(1, 5)").affectedCount == 5)
        let rows = try self.client.query("UPDATE changed SET x = 0 WHERE x > 2")
        #expect(rows.tag == "UPDATE 3")
        #expect(rows.affectedCount == 3)
        #expect(rows.count == 0)
    }
}
