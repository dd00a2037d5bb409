import Testing
import Wire

@Suite("What somebody meant to write")
struct NearestMatchTests {
    private let names = ["launchInterval", "dailyLaunches", "edge", "admin"]

    @Test(
        "A slip finds its name; what is too far from every name finds none",
        arguments: [
            ("launchIntervl", "launchInterval"), ("LAUNCHINTERVAL", "launchInterval"), ("egde", "edge"),
            ("adminn", "admin"), ("dialyLaunches", "dailyLaunches"), ("ed", nil), ("xyz", nil), ("", nil),
        ]
    )
    func find(word: String, meant: String?) {
        #expect(NearestMatch.find(word, in: self.names) == meant)
    }

    @Test("Of equally near names the first is taken, and a very long word is not compared")
    func bounds() {
        #expect(NearestMatch.find("cat", in: ["bat", "rat"]) == "bat")
        let long = String(repeating: "a", count: 129)
        #expect(NearestMatch.find(long, in: [long]) == nil)
        #expect(NearestMatch.find(String(long.dropLast()), in: [String(long.dropLast())]) != nil)
    }
}
