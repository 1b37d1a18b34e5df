package mpi

import (
	"context"
	"net/netip"
	"strconv"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// checkEnds checks that both ends exist and have IPv4 addresses: mpirun's --host does not accept IPv6.
func checkEnds(t *test.Trial) error {
	if t.Far == nil {
		return problem.New(problem.Unable, "the test needs a far end for rank 1").At(t.Near.Name)
	}
	for _, p := range []*place.Place{t.Near, t.Far} {
		if !p.Address.Unmap().Is4() {
			return problem.New(problem.Unable, "MPI messages are measured over IPv4, but the address is %s", p.Address).
				At(p.Name).
				Try("give the place an IPv4 address")
		}
	}
	return nil
}

// versions matches the version in the output of `orterun --version`.
var versions = pattern.New(`\) ((\d+)\.[\w.]+)`)

// checkVersion checks that this version of Open MPI is supported. From version 5 on, another program
// with other options starts the ranks.
func checkVersion(ctx context.Context, p *place.Place) error {
	near, err := inLayer(ctx, p, "/nowhere")
	if err != nil {
		return err
	}
	out, err := place.Output(ctx, near, near.Command("orterun", "--version")...)
	if err != nil {
		return problem.New(problem.Unable, "Open MPI cannot be run").At(p.Name).Because(err).
			Try("the image needs the package openmpi-bin")
	}
	found := versions().FindStringSubmatch(string(out))
	if found == nil || found[2] != "4" {
		return problem.New(problem.Unable, "Open MPI reports %.60q, but only version 4 is supported", out).
			At(p.Name).
			Try("set suite = \"bookworm\" in the experiment")
	}
	return nil
}

// orterun returns the arguments of the program that starts all ranks, as described in mpirun(1) of
// Open MPI 4.1. Only TCP is used, and no shared memory: two places on one host would have shared
// memory, but two hosts would not.
func (m *mpi) orterun(t *test.Trial, w workDirs, rows []row, seconds float64) []string {
	near, far := pinned(t.Near, t.Far), pinned(t.Far, t.Near)
	args := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"}
	for _, p := range [][2]string{
		{"plm", "rsh"}, {"plm_rsh_agent", "/bin/sh " + w.near + "/agent"}, {"plm_rsh_no_tree_spawn", "1"},
		// stays in the foreground, so that it can be stopped
		{"orte_launch_agent", launcher}, {"orte_leave_session_attached", "1"},
		{"oob_tcp_if_include", near},
		{"pml", "ob1"}, {"btl", "tcp,self"},
		{"mpi_yield_when_idle", m.yieldParameter(t.Of)},
	} {
		args = append(args, "--mca", p[0], p[1])
	}
	rank := func(p *place.Place, by string) []string {
		half := strconv.Itoa(m.asked.Ranks / 2)
		words := []string{"-np", half, "--host", p.Address.Unmap().String() + ":" + half, "-wdir", "/", "env",
			"OMPI_MCA_btl_tcp_if_include=" + by}
		return append(words, p.Command(m.tool.name(), m.tool.args(rows, seconds)...)...)
	}
	return append(append(append(args, rank(t.Near, near)...), ":"), rank(t.Far, far)...)
}

// yieldParameter returns whether ranks give up the processor while they wait. Busy waiting is fastest. With
// several copies or more than two ranks there are fewer processors than ranks, so they must yield.
func (m *mpi) yieldParameter(copies int) string {
	if copies > 1 || m.asked.Ranks > 2 {
		return "1"
	}
	return "0"
}

// pinned returns the interface by which a place communicates with another. If it is unknown, pinned
// returns the smallest network that contains both addresses. Open MPI does not accept a network of
// one address.
func pinned(p, other *place.Place) string {
	if p.Interface != "" {
		return p.Interface
	}
	return common(p.Address.Unmap(), other.Address.Unmap()).String()
}

func common(a, b netip.Addr) netip.Prefix {
	for n := a.BitLen() - 1; n > 0; n-- {
		one, _ := a.Prefix(n)
		if one.Contains(b) {
			return one
		}
	}
	return netip.PrefixFrom(a, 0)
}
