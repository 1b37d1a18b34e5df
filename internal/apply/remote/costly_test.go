package remote

import (
	"cmp"
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
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/strict/jsonlimit/jsonattack"
	"orrery/internal/transport/rpc"
)

// answerOf returns the type of a method's answer.
func answerOf(m anyMethod) reflect.Type {
	f, _ := reflect.TypeOf(m).Elem().FieldByName("answer")
	return f.Type.Out(0)
}

// TestMethodsListed: each declared method is in the list once, and no two have the same name.
func TestMethodsListed(t *testing.T) {
	declared, listed := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") { // a helper does not answer the methods of tests
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if literal, ok := value.(*ast.CompositeLit); ok && isMethod(literal.Type) {
						declared[n.Names[i].Name] = true
					}
				}
			case *ast.UnaryExpr:
				if name, ok := n.X.(*ast.Ident); ok && path == "method.go" {
					if listed[name.Name] {
						t.Errorf("%s is listed twice", name.Name)
					}
					listed[name.Name] = true
				}
			}
			return true
		})
	}
	for name := range declared {
		if !listed[name] {
			t.Errorf("%s is not listed in methods", name)
		}
	}
	if len(declared) < 60 {
		t.Errorf("there are %d methods: are they declared in another form?", len(declared))
	}
	names := map[string]bool{}
	for _, m := range methods() {
		name, _ := m.about()
		if names[name] {
			t.Errorf("two methods are called %q", name)
		}
		names[name] = true
	}
}

func isMethod(of ast.Expr) bool {
	generic, ok := of.(*ast.IndexListExpr)
	if !ok {
		return false
	}
	name, ok := generic.X.(*ast.Ident)
	return ok && name.Name == "method"
}

// TestCostlyAnswers: an answer of the allowed length takes no more memory than the limit, whatever
// it consists of. This holds for messages before the answer, too.
func TestCostlyAnswers(t *testing.T) {
	tried := map[reflect.Type]int{reflect.TypeFor[response](): 256 << 10, reflect.TypeFor[secretReply](): 256 << 10}
	for _, m := range methods() {
		if of := answerOf(m); of != reflect.TypeFor[none]() {
			_, how := m.about()
			tried[of] = max(tried[of], min(cmp.Or(how.maxBytes, defaultMaxBytes), 256<<10))
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

// maxMemoryBytes limits the memory that the longest answer may take in the process that receives
// it. The answer has 16 MiB. It is in memory several times while it is received, and takes 8 times
// its size when decoded. Before the garbage collector runs, there may be twice as much.
const maxMemoryBytes = 384 << 20

// TestCostlyHost: an answer of the allowed length takes no more memory than maxMemoryBytes,
// whatever it consists of. A separate process receives it, so that the kernel can report its peak.
func TestCostlyHost(t *testing.T) {
	if os.Getenv("ORRERY_COSTLY") != "" {
		askCostly()
		return
	}
	if testing.Short() {
		t.Skip("it takes half a second for each answer")
	}
	for _, text := range []string{"observe {", "observe nodes", "observe networks", "observe long nodes", "nodes nodes",
		"layers layers", "probe drift"} {
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

// askCostly receives the answer of a lying host, and prints the memory that this took.
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
	case "long nodes": // these are short enough to be decoded
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
	go rpc.Serve(context.Background(), far, prepared{about, text}) //nolint:errcheck // it ends with the process
	l, err := Open(context.Background(), "sv2", near, "1", func(err error) error { return err })
	if err != nil {
		panic(err)
	}
	h := l.Host("s", nil)
	switch about {
	case observeMethod.name:
		_, err = h.State.Observe(context.Background(), nil)
	case nodesMethod.name:
		_, err = h.Nodes.WithOwner(context.Background(), apply.InspectFull)
	case layersMethod.name:
		_, err = h.Layers.List(context.Background())
	case detectDriftMethod.name:
		err = h.Nodes.DetectDrift(context.Background(), make([]observe.Node, 1), make([]apply.DesiredNode, 1))
	}
	fmt.Println(err)
	status, _ := os.ReadFile("/proc/self/status")
	fmt.Println(string(status))
}

// A prepared helper gives the same answer to everything.
type prepared struct {
	about string
	text  json.RawMessage
}

func (p prepared) Run(context.Context, host.Command) error { return errors.ErrUnsupported }
func (p prepared) Put(context.Context, ...host.File) error { return errors.ErrUnsupported }
func (p prepared) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

func (p prepared) ServeStream(_ context.Context, about string, with *rpc.ServerStream) error {
	var q json.RawMessage
	if err := with.Recv(&q); err != nil {
		return err
	}
	if about == p.about {
		return with.Send(p.text)
	}
	return with.Send(map[string]any{"result": Greeting{Version: "1"}})
}
