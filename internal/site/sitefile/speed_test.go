package sitefile

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// large returns a site file with many nodes, each declared separately.
func large(nodes int) string {
	var b strings.Builder
	b.WriteString("site.name = \"large\"\nimage.debian.suite = \"bookworm\"\n[network.lan]\nsubnet = \"10.0.0.0/8\"\ngateway = \"10.0.0.1\"\n")
	for i := range 200 {
		fmt.Fprintf(&b, "[host.h%d]\naddress = \"root@h%d\"\n", i, i)
	}
	for i := range nodes {
		fmt.Fprintf(&b, "[node.n%d]\nid = %d\nroles = [\"r%d\"]\nhost = \"h%d\"\ncpus = 1\nmemory = \"512MiB\"\n", i, i+2,
			i%100, i%200)
	}
	for i := range 50 {
		fmt.Fprintf(&b, "[group.g%d]\nnodes = [\"n%d*\", \"n%d\"]\n", i, i, i)
	}
	return b.String()
}

func BenchmarkLoad(b *testing.B) {
	files := map[string]string{Name: large(10_000)}
	for i := range 100 {
		files[fmt.Sprintf("roles/r%d/role.toml", i)] = "needs.healthy = []\n"
	}
	dir := siteDir(b, files)
	if _, err := os.Stat(dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Load(dir); err != nil {
			b.Fatal(err)
		}
	}
}
