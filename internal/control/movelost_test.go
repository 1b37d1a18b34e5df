package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/tree"
)

const moveSite = `
[site]
name = "toykat"
[host.sv1]
address = "local"
[host.sv2]
address = "10.8.1.2"
[host.sv3]
address = "10.8.1.3"
[network.lan]
subnet  = "10.99.1.0/24"
gateway = "10.99.1.1"
[image.debian]
suite = "bookworm"
[node.web1]
id = 21
roles = ["web"]
host = "sv1"
[node.mv]
id = 31
roles = ["db"]
`

// A moment is when something happens to a host: when a step of a node begins or has ended.
type moment struct {
	kind plan.Kind
	end  bool
}

// A witness does something at one moment, and checks the state at each.
type witness struct {
	*told
	mutex sync.Mutex
	at    moment
	do    func()
	look  func()
}

func (w *witness) Steps(*plan.Plan, func(*plan.Step) time.Duration) control.StepWatcher { return w }

func (w *witness) comes(s *plan.Step, end bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if s.Subject != "mv" {
		return
	}
	if w.look(); w.do != nil && w.at == (moment{s.Kind, end}) {
		w.do()
		w.do = nil
	}
}

func (w *witness) Begin(s *plan.Step)          { w.comes(s, false) }
func (w *witness) End(s *plan.Step, err error) { w.comes(s, true); w.told.End(s, err) }

// TestMoveLost: the source or target host is lost at some moment of a move. At no moment do two
// hosts have or run the node, whatever is tried without the lost host. When the host is back, the
// next run of the same command, or of up, completes the move, and no data is lost.
func TestMoveLost(t *testing.T) {
	d := diskDesk(t)
	machines := map[string]*machine{"sv2": newMachine(t), "sv3": newMachine(t)}
	d.machine.others = map[string]*machine{}
	d.write("site.toml", moveSite)
	for name, m := range machines {
		m.disk = true
		d.machine.others[name] = m
		m.of("toykat").Addresses = []observe.Address{{Prefix: map[string]string{"sv2": "10.8.1.2/24",
			"sv3": "10.8.1.3/24"}[name], Link: "eth0", MTU: 1500}}
	}
	d.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.1/24", Link: "eth0", MTU: 1500}}
	machines["sv1"] = d.machine
	holds := func(m *machine) bool {
		dir := nodedir.Of(m.dirs, "toykat", 31)
		_, given := dir.Move().MovedTo()
		return tree.Exists(dir.File("node.json")) && !given
	}
	runs := func(m *machine) bool {
		all, err := m.of("toykat").List(t.Context(), "toykat")
		d.must(err)
		for _, n := range all {
			if n.Name == "mv" && n.State == observe.Running {
				return true
			}
		}
		return false
	}
	count := func(match func(*machine) bool) (n int) {
		for _, m := range machines {
			if match(m) {
				n++
			}
		}
		return n
	}
	w := &witness{told: d.watch, look: func() {
		if held, running := count(holds), count(runs); held > 1 || running > 1 {
			t.Errorf("%d hosts have the node, and %d let it run", held, running)
		}
	}}
	d.Session.Watcher = w
	move := func(to string) error {
		_, err := nodes.Move(t.Context(), d.Session, d.site(), []string{"mv"}, to)
		return err
	}
	up := func() error {
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		return err
	}
	d.must(up())
	if !holds(machines["sv2"]) {
		d.must(move("sv2"))
	}
	written := func(m *machine) (private, data string) {
		return filepath.Join(nodedir.Of(m.dirs, "toykat", 31).Private(), "root/f"),
			filepath.Join(m.dirs.Volumes("toykat"), "archive/mv/f")
	}
	private, data := written(machines["sv2"])
	for _, path := range []string{private, data} {
		d.must(host.WriteFile(host.File{Path: path, Content: []byte("kept"), Mode: 0o600}))
	}
	from, to := "sv2", "sv3"
	tried := 0
	for _, kind := range []plan.Kind{plan.CopyNode, plan.StopNode, plan.SendNode, plan.HandOverNode, plan.ReceiveNode,
		plan.StartNode, plan.CleanUpNode} {
		for _, end := range []bool{false, true} {
			for _, source := range []bool{true, false} {
				lost := to
				if source {
					lost = from
				}
				what := string(kind) + " begins, " + lost + " is lost"
				if end {
					what = strings.Replace(what, "begins", "ends", 1)
				}
				befell := false
				w.at, w.do = moment{kind, end}, func() { befell = true; d.machine.lose(lost) }
				err := move(to)
				if !befell {
					t.Fatalf("%s: it never came to that: %v", what, err)
				}
				d.Links.Close()         // that run is over
				d.machine.served.Wait() // and so are its helpers
				w.look()
				if up() == nil { // although a host does not answer
					t.Errorf("%s: up succeeds without it", what)
				}
				d.Without = []string{lost}
				_ = up() // it does what it may
				w.look()
				d.Without = nil
				d.Links.Close()
				d.machine.served.Wait()
				d.machine.others[lost] = machines[lost]
				tried++
				if tried%2 == 0 {
					err = up()
				} else {
					err = move(to)
				}
				if err != nil {
					t.Fatalf("%s: afterwards: %v\n%s", what, err, d.watch.text())
				}
				w.look()
				if count(runs) != 1 || count(holds) != 1 {
					t.Fatalf("%s: %d hosts have it, %d let it run", what, count(holds), count(runs))
				}
				if !holds(machines[to]) {
					d.must(move(to))
				}
				private, data := written(machines[to])
				for _, path := range []string{private, data} {
					if text, err := os.ReadFile(path); string(text) != "kept" {
						t.Fatalf("%s: %s has %q: %v", what, path, text, err)
					}
				}
				for name, m := range machines {
					left, _ := filepath.Glob(m.dirs.Arrivals("toykat") + "/*")
					if volumes, _ := filepath.Glob(m.dirs.Volumes("toykat") + "/archive/*"); name != to {
						left = append(left, volumes...)
					}
					if len(left) > 0 {
						t.Errorf("%s: left on %s is %v", what, name, left)
					}
				}
				if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || !p.Empty() {
					t.Fatalf("%s: there is to do afterwards: %v, %v", what, steps(p), err)
				}
				from, to = to, from
			}
		}
	}
}

// steps returns the steps of a plan as text.
func steps(p *plan.Plan) (all []string) {
	if p != nil {
		for _, s := range p.Steps {
			all = append(all, s.Host+": "+s.String()+": "+s.Reason)
		}
	}
	return all
}
