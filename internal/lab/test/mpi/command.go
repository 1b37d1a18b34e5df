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

// ends checks that both ends are there, with addresses that mpirun's --host can take: it has no form for IPv6.
func ends(t *test.Trial) error {
	if t.Far == nil {
		return problem.New(problem.Unable, "there is no far end for rank 1").At(t.Near.Name)
	}
	for _, p := range []*place.Place{t.Near, t.Far} {
		if !p.Address.Unmap().Is4() {
			return problem.New(problem.Unable, "messages of MPI are measured over IPv4, and the address is %s", p.Address).
				At(p.Name).
				Try("give it an address of IPv4")
		}
	}
	return nil
}

// versions takes the number from what `orterun --version` prints.
var versions = pattern.New(`\) ((\d+)\.[\w.]+)`)

// version checks that this is the Open MPI whose launch is known: from 5 on, another program with
// other options starts ranks.
func version(ctx context.Context, p *place.Place) error {
	near, err := below(ctx, p, "/nowhere")
	if err != nil {
		return err
	}
	out, err := place.Output(ctx, near, near.Command("orterun", "--version")...)
	if err != nil {
		return problem.New(problem.Unable, "Open MPI is not there").At(p.Name).Because(err).
			Try("the image needs the package openmpi-bin")
	}
	found := versions().FindStringSubmatch(string(out))
	if found == nil || found[2] != "4" {
		return problem.New(problem.Unable, "Open MPI says that it is %.60q, and only version 4 can be started", out).
			At(p.Name).
			Try("let the experiment have suite = \"bookworm\"")
	}
	return nil
}

// orterun returns the arguments of the program that starts all ranks, as mpirun(1) of Open MPI 4.1
// tells them. Nothing but TCP is used, not shared memory either: two places of one host would have
// that, and two hosts would not.
func (m *mpi) orterun(t *test.Trial, w work, rows []row, seconds float64) []string {
	near, far := pinned(t.Near, t.Far), pinned(t.Far, t.Near)
	args := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"}
	for _, p := range [][2]string{
		{"plm", "rsh"}, {"plm_rsh_agent", "/bin/sh " + w.near + "/agent"}, {"plm_rsh_no_tree_spawn", "1"},
		// it stays in the foreground, so that it can be ended
		{"orte_launch_agent", launcher}, {"orte_leave_session_attached", "1"},
		{"oob_tcp_if_include", near},
		{"pml", "ob1"}, {"btl", "tcp,self"},
		{"mpi_yield_when_idle", m.yields(t.Of)},
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

// yields: ranks wait by turning round and round, which is quickest. Copies at once, and many ranks,
// have fewer processors than ranks, and must give way.
func (m *mpi) yields(copies int) string {
	if copies > 1 || m.asked.Ranks > 2 {
		return "1"
	}
	return "0"
}

// pinned names the interface by which a place talks to another. If it is not known it is that in
// the smallest network that has both addresses; a network of one address is not understood by Open
// MPI.
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
