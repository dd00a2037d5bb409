import CommandLineTool
import Testing
import Wire

@Suite("wakegate worker list", .timeLimit(.minutes(15)))
struct WorkerListTests {
    @Test("Each worker has a line with the wakes that it accepts, for one topic or all")
    func text() throws {
        let answer = try JSONReader.read(
            """
            {"topics":[{"topic":"a","workers":302,"streams":[
              {"name":"one","slots":4,"busy":1,"state":"free","takes":{"pushes":true,"tasks":["x.*"],"sessions":["s"],
               "resources":["gpu"],"devices":null}},
              {"name":"","slots":1,"busy":0,"state":"stalled","takes":{"pushes":false,"tasks":[],"sessions":[],
               "resources":[],"devices":2}}]},
             {"topic":"b","workers":0,"streams":[]},{"topic":"c"}]}
            """
        )
        let text = """
            worker    topic  slots busy  state    takes
            one       a      1 of 4      free     pushes, task=x.*, session=s, resource=gpu
            -         a      0 of 1      stalled  nothing of 2 devices
            300 more  a      -           -        -

            """
        #expect(WorkerListCommand.text(answer, topic: nil) == text)
        #expect(WorkerListCommand.text(answer, topic: "a") == text)
        #expect(WorkerListCommand.text(answer, topic: "b").isEmpty)
    }
}
