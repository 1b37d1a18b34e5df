package role

import (
	"slices"
	"testing"

	"orrery/internal/site"
)

// TestAccess: a change of the keys that let people in installs just their file. Nothing restarts, and
// keys that are no longer declared are removed.
func TestAccess(t *testing.T) {
	const put, remove = "put /root/.ssh/authorized_keys", "rm -f -- /root/.ssh/authorized_keys"
	for _, c := range []struct {
		name        string
		before, now site.Node
		want        []string
	}{
		{"first", site.Node{}, site.Node{AuthorizedKeys: []string{"a"}}, []string{put}},
		{"changed", site.Node{AuthorizedKeys: []string{"a"}}, site.Node{AuthorizedKeys: []string{"b"}}, []string{put}},
		{"same", site.Node{AuthorizedKeys: []string{"a"}}, site.Node{AuthorizedKeys: []string{"a"}}, nil},
		{"none", site.Node{AuthorizedKeys: []string{"a"}}, site.Node{}, []string{remove}},
		{"another user", site.Node{AuthorizedKeys: []string{"a"}}, site.Node{AuthorizedKeys: []string{"a"}, SSHUser: "ada"},
			[]string{remove, "put /home/ada/.ssh/authorized_keys"}},
	} {
		s := cluster()
		n := &s.Nodes[0]
		n.AuthorizedKeys, n.SSHUser = c.before.AuthorizedKeys, c.before.SSHUser
		j, in := changed(t, s, func() { n.AuthorizedKeys, n.SSHUser = c.now.AuthorizedKeys, c.now.SSHUser })
		if err := j.Configure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := done(in); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// TestAccessMovesIntoRole: keys move from site.toml into a role that has the same file.
func TestAccessMovesIntoRole(t *testing.T) {
	s := cluster()
	s.Nodes[0].AuthorizedKeys = []string{"a"}
	j, in := changed(t, s, func() {
		s.Nodes[0].AuthorizedKeys = nil
		s.Roles[3].Files[0].Path = "/root/.ssh/authorized_keys"
	})
	if err := j.Configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(done(in), "rm -f -- /root/.ssh/authorized_keys") {
		t.Errorf("%q", done(in))
	}
}
