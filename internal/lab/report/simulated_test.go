package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/probe"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// A simulation creates a bundle like that of a run, from a seed.
type simulation struct {
	seed   uint64
	rounds int // rounds that count
	cost   map[string]map[string]float64
	at     time.Time
	noise  *rand.Rand
	head   bundle.Manifest
	facts  string

	seconds int                                              // length of the series of a flow, or 0 for no series
	more    func(round int, setting, of string) []test.Label // additional labels, or nil
}

const suiteText = "name = \"cost\"\n"

func simulate(seed uint64) *simulation {
	digest := sha256.Sum256([]byte(suiteText))
	began := time.Date(2026, 3, 14, 21, 5, 0, 0, time.UTC)
	return &simulation{
		seed: seed, rounds: 12, at: began, facts: simulatedFacts, noise: rand.New(rand.NewPCG(seed, 1)),
		cost: map[string]map[string]float64{ // ratio to bare, by setting and test
			"veth":      {"capture": 0.88, "net": 0.93, "micro": 1.01},
			"routed":    {"capture": 0.91, "net": 0.95},
			"macvlan":   {"capture": 0.97, "net": 0.99},
			"exclusive": {"disk": 1.12},
		},
		head: bundle.Manifest{
			Format: bundle.Format, Orrery: "v0.4.0", ID: "cost-20260314-2105", Experiment: "cost",
			Title:  "What a container costs on sv1",
			Source: "KAT-7, table 1", Digest: hex.EncodeToString(digest[:]), Host: "sv1", Who: "ada", Began: began,
			State: bundle.Running, Seed: seed, Width: 0.1,
			Settings: []bundle.Setting{
				{Name: experiment.Bare, About: "the host"},
				{Name: experiment.Control, About: "the host once more"},
				{Name: "veth", About: "container, veth on a bridge", Nodes: []string{"veth"}},
				{Name: "veth again", About: "veth once more", Again: "veth", Nodes: []string{"veth-again"}},
				{Name: "routed", About: "container, veth without a bridge", Nodes: []string{"routed"}},
				{Name: "macvlan", About: "container, macvlan on eth1", Nodes: []string{"macvlan"}},
				{Name: "exclusive", About: "container, an interface of its own", Nodes: []string{"exclusive"}},
				{Name: "kvm", About: "virtual machine, virtio", Missing: "this host has no /dev/kvm"},
			},
			Tests: []bundle.Test{
				{Name: "capture", Kind: "capture", Copies: 1, Source: "KAT-7, table 1", Figures: []test.Figure{
					{Name: "lossless rate", Unit: "bit/s", Better: test.More, Aggregate: test.Sum},
					{Name: "host cpu", Unit: "1", Better: test.Less, Aggregate: test.Mean},
					{Name: "cpu per Gb/s", Unit: "s/Gbit", Better: test.Less, Aggregate: test.Mean},
				}},
				{Name: "net", Kind: "net", Copies: 1, Source: "iperf3", Figures: []test.Figure{
					{Name: "tcp forward 1 stream", Unit: "bit/s", Better: test.More, Aggregate: test.Sum},
					{Name: "udp small packets", Unit: "1/s", Better: test.More, Aggregate: test.Sum},
					{Name: "round trip", Unit: "s", Better: test.Less, Aggregate: test.Mean},
				}},
				{Name: "micro", Kind: "micro", Copies: 1, Source: "VirtuaLinux, table 2", Figures: []test.Figure{
					{Name: "null syscall", Unit: "s", Better: test.Less, Aggregate: test.Mean},
					{Name: "open and close", Unit: "s", Better: test.Less, Aggregate: test.Mean},
					{Name: "select on 500 TCP descriptors", Unit: "s", Better: test.Less, Aggregate: test.Mean},
					{Name: "signal", Unit: "s", Better: test.Less, Aggregate: test.Mean},
					{Name: "fork and execve", Unit: "s", Better: test.Less, Aggregate: test.Mean},
					{Name: "pipe bandwidth", Unit: "B/s", Better: test.More, Aggregate: test.Sum},
					{Name: "clock resolution", Unit: "s", Better: test.Neither, Aggregate: test.Mean},
				}},
				{Name: "cpu x8", Kind: "cpu", Copies: 8, Source: "INFN", Figures: []test.Figure{
					{Name: "score", Unit: "1/s", Better: test.More, Aggregate: test.Sum},
				}},
				{Name: "disk", Kind: "disk", Copies: 1, Source: "CERN", Figures: []test.Figure{
					{Name: "sequential write", Unit: "B/s", Better: test.More, Aggregate: test.Sum},
					{Name: "random read 4k", Unit: "1/s", Better: test.More, Aggregate: test.Sum},
				}},
			},
		},
	}
}

// typical holds the values of bare and their noise.
var typical = map[string][2]float64{
	"lossless rate": {6.2e9, 0.015}, "host cpu": {0.31, 0.02}, "cpu per Gb/s": {0.402, 0.02},
	"tcp forward 1 stream": {21.4e9, 0.02}, "udp small packets": {412e3, 0.03},
	"round trip": {21.3e-6, 0.02}, "null syscall": {71e-9, 0.004}, "open and close": {912e-9, 0.01},
	"select on 500 TCP descriptors": {9.8e-6, 0.01},
	"signal":                        {640e-9, 0.01}, "fork and execve": {412e-6, 0.02},
	"pipe bandwidth":   {3.2 * (1 << 30), 0.02},
	"clock resolution": {18e-9, 0.01},
	"score":            {143, 0.005}, "sequential write": {412 * (1 << 20), 0.09}, "random read 4k": {48213, 0.04},
}

// write writes the bundle through the Writer, as a run does.
func (s *simulation) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), s.head.ID)
	w, err := bundle.Create(t.Context(), dir, s.head)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.WriteExperiment([]byte(suiteText)))
	check(w.WriteFacts(json.RawMessage(s.facts)))
	for round := range s.rounds + 1 {
		var present []bundle.Setting
		for _, setting := range s.head.Settings {
			if setting.Missing == "" {
				present = append(present, setting)
			}
		}
		for slot, i := range stats.Order(len(present), round, s.seed) {
			for _, test := range s.head.Tests {
				for c := range test.Copies {
					check(w.AppendTrial(s.trial(round, slot, present[i].Name, test, c)))
				}
				for range 2 {
					s.at = s.at.Add(time.Second)
					check(w.AppendSecond(s.second(present[i].Name, test.Name)))
				}
			}
		}
		s.head.Rounds = round + 1
		check(w.WriteManifest(s.head))
	}
	s.head.State, s.head.Ended = bundle.Done, s.at
	check(w.WriteManifest(s.head))
	check(w.Close())
	return dir
}

func (s *simulation) trial(round, slot int, setting string, of bundle.Test, c int) bundle.Trial {
	t := bundle.Trial{Round: round, Instance: max(1, round), Slot: slot, Setting: setting, Test: of.Name, Copy: c,
		Began: s.at, Ended: s.at.Add(2 * time.Second)}
	if of.Name == "disk" && setting == "macvlan" {
		t.Error = "fio: the work directory has no room for 4 GiB"
		t.Output = "fio: native_fallocate call failed: No space left on device\nfio: pid=0, err=28/file:filesetup.c:257, func=write, error=No space left on device"
		return t
	}
	if of.Name == "net" && setting == "routed" && round == 4 {
		t.Error = "iperf3: the server did not listen within 5 s"
		return t
	}
	ratio := 1.0
	setting = strings.TrimSuffix(setting, experiment.AgainSuffix)
	if r, ok := s.cost[setting][of.Name]; ok {
		ratio = r
	}
	for _, f := range of.Figures {
		base := typical[f.Name]
		value := base[0] * math.Exp(base[1]*s.noise.NormFloat64())
		if f.Better == test.Less && of.Name != "micro" {
			value /= ratio
		} else {
			value *= ratio
		}
		t.Samples = append(t.Samples, test.Sample{Figure: f.Name, Value: value})
	}
	if of.Name == "net" && s.seconds > 0 {
		t.Series = append(t.Series, s.series(of.Figures[0].Name, t.Samples[0].Value, setting))
	}
	t.Labels = s.labels(round, setting, of.Name)
	if s.more != nil {
		t.Labels = append(t.Labels, s.more(round, setting, of.Name)...)
	}
	if of.Name == "capture" {
		t.Detail = s.search(setting, t.Samples[0].Value)
	}
	return t
}

func (s *simulation) labels(round int, setting, of string) []test.Label {
	all := []test.Label{{Name: "governor", Why: "cpu0 is at powersave", Cure: "cpupower frequency-set -g performance"}}
	if setting == "veth" && of == "net" {
		all = append(all, test.Label{Name: "bridge-nf", Why: "net.bridge.bridge-nf-call-iptables = 1",
			Cure: "sysctl net.bridge.bridge-nf-call-iptables=0", Where: "tcp"})
	}
	if of == "disk" && round%3 == 1 {
		all = append(all, test.Label{Name: "page-cache", Why: "the file of 4 GiB fits into memory of 24 GiB",
			Cure: "use a larger file, or a file system that can O_DIRECT."})
	}
	return all
}

// series returns a figure for each second. In veth it drops to zero in the middle of a trial, as if
// a server were down.
func (s *simulation) series(figure string, value float64, setting string) test.Series {
	all := test.Series{Figure: figure, Step: 1}
	for i := range s.seconds {
		now := value * (1 + 0.03*s.noise.NormFloat64())
		if setting == "veth" && i >= s.seconds/3 && i < s.seconds/2 {
			now = 0
		}
		all.Values = append(all.Values, now)
	}
	return all
}

// search returns the detail of a capture trial. Losses begin above the lossless rate.
func (s *simulation) search(setting string, lossless float64) json.RawMessage {
	type died struct {
		Where map[string]int `json:"where"`
	}
	var points []map[string]any
	for _, share := range []float64{1.5, 0.7, 0.9, 1.1, 0.99, 1.04, 1.01, 1.0} {
		rate := lossless * share
		point := map[string]any{"search": "search", "rate": rate, "achieved": rate * (1 - 0.002*s.noise.Float64()),
			"sent": 1000, "received": 1000, "valid": true}
		if lost := math.Round(1000 * (0.6*(share-1) + 0.02*s.noise.NormFloat64())); share > 1 && lost > 0 {
			point["received"] = 1000 - lost
			where := map[string]int{"socket": int(lost * 150)}
			if setting == "veth" {
				where["softnet"] = int(lost * 20)
			}
			point["died"] = died{where}
		}
		points = append(points, point)
	}
	text, _ := json.Marshal(map[string]any{"program": "orrery", "curve": points})
	return text
}

func (s *simulation) second(setting, of string) probe.Second {
	busy := 0.2 + 0.2*s.noise.Float64()
	if of == "cpu x8" {
		busy = 1.98
	}
	x := probe.Second{At: s.at, Took: 1, CPU: probe.Times{User: busy * 0.6, System: busy * 0.4, Idle: 2 - busy}}
	if setting != experiment.Bare && setting != experiment.Control {
		x.Cgroups = map[string]probe.Usage{setting: {User: busy * 0.5, System: busy * 0.4}}
	}
	switch of {
	case "net", "capture":
		x.Net = []probe.Link{{Name: "orv" + setting[:3],
			Received: probe.Traffic{Bytes: uint64(6e8 * (1 + 0.1*s.noise.Float64()))}}}
		x.Softnet = probe.Softnet{Processed: 400000, Dropped: uint64(max(0, s.noise.NormFloat64()*300-400))}
	case "disk":
		x.Disks = []probe.Disk{{Name: "nvme0n1", WrittenBytes: uint64(4e8 * s.noise.Float64())}}
		x.Stalls.IO.Some = 0.3 * s.noise.Float64()
	}
	return x
}

const simulatedFacts = `{"collected":"2026-03-14T21:04:58Z","kernel":{"release":"6.1.0-32-amd64","command_line":"quiet"},
"processors":{"model":"Intel(R) Xeon(R) Gold 6226R","count":16,"microcode":"0x5003707","governor":"powersave","turbo":true},
"settings":{"net.core.rmem_max":"212992","net.ipv4.udp_mem":"188319 251094 376638"},
"interfaces":[{"name":"eth0","driver":"ixgbe","mtu":1500,"offloads":["gro","gso","tso"]},{"name":"eth1","driver":"ixgbe","mtu":9000,"offloads":["gro"]}],
"tools":{"iperf3":"sha256:9f2c1d","fio":"sha256:11aa07"}}`
