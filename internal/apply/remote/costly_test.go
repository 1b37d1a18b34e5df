package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/image"
	"orrery/internal/jsonlimit"
	"orrery/internal/jsonlimit/jsonattack"
	"orrery/internal/observe"
	"orrery/internal/site/twin"
	"orrery/internal/volume"
	"orrery/internal/wire"
)

// answers are the types of what a helper answers, by what it is asked about; nil is an answer that says nothing.
var answers = map[string]any{
	toGreet: Greeting{}, toHold: nil, toSweep: nil, toObserve: observe.Host{}, toDrain: nil, toLook: &observe.Drain{}, toClear: []string{}, toMark: nil,
	toOutfit: []string{}, toNodes: counted{}, toProbe: [][]observe.Drift{}, toDescribe: []image.Record{}, toDo: nil, toSettle: nil, toList: []string{},
	toRecall: time.Duration(0), toReturn: nil, toBoot: nil, toRead: observe.Releases{}, toWrite: nil, toCopy: nil, toCompare: map[int]string{},
	toFetch: nil, toKeep: nil, toReceive: nil, toReveal: "", toSeal: nil, toTell: []twin.Record{}, toRegister: nil, toForget: nil, toFill: filled{},
	toLay: nil, toShelve: shelf{}, toWeigh: volume.Size{}, toFindCut: cut{}, toCapture: shelf{}.Kept, toShelveIt: nil, toDiscard: nil, toPutBack: nil,
	toGiveBackup: nil, toFindBackup: nil, toLayBackup: nil, toSeePart: &observe.Restoring{}, toAdvance: []string{}, toMeasureAll: []apply.Contents{},
	toMirror: nil, toVerify: [][]volume.Deviation{}, toInherit: []apply.Adoption{}, toAdopt: inheritance{}, toSchedule: []string{}, toTryOut: nil,
	toStock: []image.Kept{}, toProve: nil, toClean: nil, toNote: nil, toRecount: []int{}, toShow: nil, toMeasure: &apply.Usage{}, toSample: host.Sample{},
	toInspect: doctor.Facts{}, toTry: []int{}, toKey: "", toWord: image.Word{}, toPassOut: "", toPassIn: nil,
}

// TestAnswersListed: the list above has all that a helper can be asked about.
func TestAnswersListed(t *testing.T) {
	for _, path := range []string{"remote.go", "passage.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			if text, ok := v.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				about, _ := strconv.Unquote(text.Value)
				if _, ok := answers[about]; !ok {
					t.Errorf("%s: %q is not listed", v.Names[0].Name, about)
				}
			}
			return true
		})
	}
}

// TestCostlyAnswers: whatever an answer of the allowed length has most of, it takes no more memory than that length
// allows. That holds for what is said on the way, too.
func TestCostlyAnswers(t *testing.T) {
	tried := map[reflect.Type]int{reflect.TypeFor[word](): 256 << 10, reflect.TypeFor[given](): 256 << 10}
	for about, answer := range answers {
		if answer != nil {
			of := reflect.TypeOf(answer)
			tried[of] = max(tried[of], min(mostToSay(about), 256<<10))
		}
	}
	for of, size := range tried {
		for name, text := range jsonattack.Texts(of, size) {
			into := reflect.New(of)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := jsonlimit.Unmarshal(text, into.Interface())
			runtime.GC()
			runtime.ReadMemStats(&after)
			took := int(after.HeapAlloc) - int(before.HeapAlloc)
			runtime.KeepAlive(into)
			if most := jsonlimit.Free + jsonlimit.Factor*len(text) + 64<<10; took > most {
				t.Errorf("%s: %d bytes take %d bytes of memory, and may take %d (%v)", name, len(text), took, most, err)
			}
		}
	}
}

// maxMemoryBytes is what the longest answer may cost the process that has asked: it has 16 MiB, a few times over while it
// is received, and 8 times that once it is decoded; before the garbage collector runs there may be twice as much.
const maxMemoryBytes = 384 << 20

// TestCostlyHost: a host that answers at the allowed length, with whatever takes most memory, costs the process that
// has asked no more than is stated above. The process is one of its own, whose peak the kernel knows.
func TestCostlyHost(t *testing.T) {
	if os.Getenv("ORRERY_COSTLY") != "" {
		askCostly()
		return
	}
	if testing.Short() {
		t.Skip("it takes half a second for each answer")
	}
	for _, text := range []string{"observe {", "observe nodes", "observe networks", "observe long nodes", "nodes nodes", "layers layers", "probe drift"} {
		t.Run(text, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run", "^TestCostlyHost$", "-test.v")
			cmd.Env = append(os.Environ(), "ORRERY_COSTLY="+text)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var peak int
			for line := range strings.Lines(string(out)) {
				if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
					peak, _ = strconv.Atoi(strings.Fields(rest)[0])
				}
			}
			t.Logf("%d MiB", peak>>10)
			if peak == 0 || peak<<10 > maxMemoryBytes {
				t.Errorf("it took %d MiB:\n%s", peak>>10, out)
			}
		})
	}
}

// askCostly asks a host that lies, and prints what that has cost.
func askCostly() {
	about, what, _ := strings.Cut(os.Getenv("ORRERY_COSTLY"), " ")
	many := func(elem string) json.RawMessage {
		return json.RawMessage("[" + strings.Repeat(elem+",", (16<<20-64)/(len(elem)+1)) + elem + "]")
	}
	var result any
	switch what {
	case "{":
		result = map[string]any{"engines": json.RawMessage("{" + strings.Repeat(`"":{},`, (16<<20-64)/6) + `"":{}}`)}
	case "layers":
		result = many("{}")
	case "long nodes": // which may be decoded
		result = map[string]any{"nodes": many(`{"state":"` + strings.Repeat("x", 320) + `"}`)}
	case "drift":
		result = many("[{}]")
	default:
		result = map[string]any{what: many("{}")}
	}
	text, err := json.Marshal(map[string]any{"result": result})
	if err != nil {
		panic(err)
	}
	near, far := net.Pipe()
	go wire.Serve(context.Background(), far, prepared{about, text}) //nolint:errcheck // it ends with the process
	l, err := Open(context.Background(), "sv2", near, "1", func(err error) error { return err })
	if err != nil {
		panic(err)
	}
	h := l.Host("s", nil)
	switch about {
	case toObserve:
		_, err = h.Observe(context.Background(), nil)
	case toNodes:
		_, err = h.Present(context.Background(), apply.Closely)
	case toStock:
		_, err = h.Layers(context.Background())
	case toProbe:
		err = h.Probe(context.Background(), make([]observe.Node, 1), make([]apply.Want, 1))
	}
	fmt.Println(err)
	status, _ := os.ReadFile("/proc/self/status")
	fmt.Println(string(status))
}

// A prepared helper has an answer ready.
type prepared struct {
	about string
	text  json.RawMessage
}

func (p prepared) Run(context.Context, host.Command) error { return errors.ErrUnsupported }
func (p prepared) Put(context.Context, ...host.File) error { return errors.ErrUnsupported }
func (p prepared) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

func (p prepared) Talk(_ context.Context, about string, with *wire.Caller) error {
	var q json.RawMessage
	if err := with.Hear(&q); err != nil {
		return err
	}
	if about == p.about {
		return with.Say(p.text)
	}
	return with.Say(map[string]any{"result": Greeting{Version: "1"}})
}
