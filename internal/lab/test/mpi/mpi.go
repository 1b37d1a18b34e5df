// Package mpi measures MPI messages between the place under test and the far end.
//
// The messages use TCP over one interface. The benchmarks are PingPong over message sizes, and
// Sendrecv, Exchange, Bcast, Reduce, Allreduce, Allgather and Alltoall of all ranks.
//
// The rows follow the MPI figures of M. Aldinucci and others, "VirtuaLinux: virtualized
// high-density clusters with no single point of failure" (ParCo 2007), which were measured with
// Intel's MPI Benchmarks. The program is Orrery's own (program/orrery-mpi.c), or Intel's IMB-MPI1
// if the user has added it to the image. The first half of the ranks is in the place under test,
// the rest at the far end. The lab itself is the launch agent, so that no SSH is needed: see
// launch.go.
package mpi

import (
	"context"
	_ "embed" // the program
	"fmt"
	"strconv"
	"strings"
	"time"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

//go:embed program/orrery-mpi.c
var source []byte

// programName is the name of Orrery's own program in the layer.
const programName = "orrery-mpi"

// Options are the keys of the test in an experiment. docs/lab.md has the comments of the fields.
type Options struct {
	// Default `"orrery"`: or `"imb"`: Intel's IMB-MPI1, if the image has it (never tested)
	Program string `toml:"program"`
	// Default `4.0`: seconds of measuring in a trial
	Time float64 `toml:"time"`
	// Default 0, 4, 16, … bytes to 4 MiB: of PingPong's messages: latency up to 4096, bandwidth above
	Sizes []int `toml:"sizes"`
	// Default `[64, 16384, 1048576]`: bytes, of the others
	Collective []int `toml:"collective"`
	// Default `["pingpong", "bcast", "allreduce", "alltoall"]`: also `"sendrecv"`, `"exchange"`,
	// `"reduce"`, `"allgather"`
	Benchmarks []string `toml:"benchmarks"`
	// Default `2`: even, at most 64
	Ranks int `toml:"ranks"`
}

func defaults() Options {
	return Options{Program: "orrery", Time: 4, Ranks: 2, Benchmarks: []string{pingpong, bcast, allreduce, alltoall},
		Sizes:      []int{0, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20},
		Collective: []int{64, 16 << 10, 1 << 20},
	}
}

type mpi struct {
	asked Options
	rows  []row
	tool  tool
}

// A tool is a program that measures.
type tool interface {
	name() string
	args(rows []row, seconds float64) []string
	parse(out []byte) (measured, error)
}

// measured holds the output of a tool: seconds by row, and the least payload that crossed the
// network.
type measured struct {
	seconds        map[row]float64
	sent, received uint64 // payload bytes, as seen by rank 0
	detail         any
}

var _ test.Test = (*mpi)(nil)

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	m := &mpi{asked: defaults()}
	if err := test.Read(decode, &m.asked, m.asked.check); err != nil {
		return nil, err
	}
	m.rows = m.asked.rows()
	m.tool = orrery{}
	if m.asked.Program == "imb" {
		m.tool = imb{m.asked.Ranks}
	}
	return m, nil
}

// Needs returns the packages and the program to compile. libopenmpi-dev brings mpicc. IMB-MPI1 is
// in no Debian package.
func (m *mpi) Needs() test.Needs {
	needs := test.Needs{Packages: []string{"openmpi-bin", "libopenmpi3"}, Runs: []string{"orterun", "orted"}, Far: true}
	if m.asked.Program == "orrery" {
		needs.Packages = append(needs.Packages, "libopenmpi-dev", "gcc", "libc6-dev")
		needs.Programs = []test.Program{{Name: programName, Source: source,
			Compile: []string{"mpicc", "-O2", "-o", "PROGRAM", "SOURCE"}}}
	}
	return needs
}

// Figures returns the rows of the table.
func (m *mpi) Figures() []test.Figure {
	var all []test.Figure
	for _, r := range m.rows {
		all = append(all, r.figure())
	}
	return all
}

// Time returns about how long a trial takes. Starting and stopping two ranks takes less than a
// second.
func (m *mpi) Time() time.Duration {
	return time.Duration((m.asked.Time*1.2 + 0.5*float64(m.asked.Ranks)) * float64(time.Second))
}

// labelCrowded returns a label if the ranks have to share processors. MPI waits busily, so a rank
// without a processor delays all others.
func (m *mpi) labelCrowded(ctx context.Context, t *test.Trial) []test.Label {
	out, err := t.Near.Output(ctx, "nproc")
	processors, bad := strconv.Atoi(strings.TrimSpace(string(out)))
	all := m.asked.Ranks * max(1, t.Of)
	if err != nil || bad != nil || all <= processors {
		return nil
	}
	return []test.Label{{Name: "ranks", Why: fmt.Sprintf("%d ranks share %d processors", all, processors),
		Cure: "use fewer ranks or copies, or a host with more processors"}}
}

// Check starts all ranks and lets them exchange a few messages.
func (m *mpi) Check(ctx context.Context, t *test.Trial) error {
	if err := checkEnds(t); err != nil {
		return err
	}
	if err := checkVersion(ctx, t.Near); err != nil {
		return err
	}
	try := *t
	try.Barrier = func(context.Context) error { return nil }
	out, err := m.launch(ctx, &try, m.rows[:1], 0.01)
	if err != nil {
		return problem.New(problem.Unable, "%d MPI ranks, half of them at %s, cannot be run",
			m.asked.Ranks, t.Far.Name).At(t.Near.Name).Because(err).
			Try("see the output of mpirun; both ends need %s and openmpi-bin, and no firewall may be between them",
				m.tool.name())
	}
	_, err = m.tool.parse(out)
	return err
}

// Run runs one trial.
func (m *mpi) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	if err := checkEnds(t); err != nil {
		return test.Result{}, err
	}
	before, err := t.Near.Traffic(ctx)
	if err != nil {
		return test.Result{}, err
	}
	out, err := m.launch(ctx, t, m.rows, m.asked.Time)
	if err != nil {
		return test.Result{}, err
	}
	after, err := t.Near.Traffic(ctx)
	if err != nil {
		return test.Result{}, err
	}
	if err := t.Keep("mpi.txt", out); err != nil {
		return test.Result{}, err
	}
	got, err := m.tool.parse(out)
	if err != nil {
		return test.Result{}, err
	}
	samples, err := m.samples(got)
	seen := tally(after).since(before)
	labels := append(checkTraffic(t.Near.Interface, seen, got), m.labelCrowded(ctx, t)...)
	detail := Detail{Lines: got.detail, Sent: got.sent, Received: got.received, Interfaces: seen}
	return test.Result{Samples: samples, Labels: labels, Detail: detail}, err
}

// A Detail is stored in the bundle beside the samples.
type Detail struct {
	Lines      any    `json:"lines"`            // of the program's output, each with minimum and median
	Sent       uint64 `json:"payload_sent"`     // payload bytes that rank 0 sent, at least
	Received   uint64 `json:"payload_received"` // payload bytes that rank 0 received, at least
	Interfaces tally  `json:"interfaces"`       // counters in the near place during the trial
}

// samples finds each figure in the results.
func (m *mpi) samples(got measured) ([]test.Sample, error) {
	var all []test.Sample
	for _, r := range m.rows {
		seconds, ok := got.seconds[r]
		if !ok || seconds <= 0 {
			return nil, problem.New(problem.Failed, "%s printed no result for %s with %d bytes", m.tool.name(), r.benchmark, r.bytes)
		}
		all = append(all, test.Sample{Figure: r.figure().Name, Value: r.value(seconds)})
	}
	return all, nil
}
