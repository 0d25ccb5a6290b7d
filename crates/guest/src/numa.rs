//! The nodes of a guest's memory (`numa=2x512M`, `numa=768M+256M`).

use std::fmt;
use std::str::FromStr;

use pagelab_experiment::Size;

/// Nodes at most: what QEMU's usual machine takes without more words.
const MOST: usize = 8;
/// The least memory of a node, bytes.
const LEAST: u64 = 16 << 20;

/// How much memory each node has. Processors are dealt to them in turn: a node that gets none has memory alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(Vec<u64>);

impl Nodes {
    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.0.iter().sum()
    }

    /// QEMU's words for them, with so many processors, and with this distance of any two.
    pub fn words(&self, cpus: u32, distance: Option<u8>) -> Vec<String> {
        let count = self.0.len();
        let mut words = Vec::new();
        for (node, bytes) in self.0.iter().enumerate() {
            let processors = (0..cpus as usize).filter(|cpu| cpu % count == node);
            let processors: String = processors.map(|cpu| format!(",cpus={cpu}")).collect();
            words.extend(["-object".to_owned(), format!("memory-backend-ram,id=node{node},size={bytes}")]);
            words.extend(["-numa".to_owned(), format!("node,nodeid={node},memdev=node{node}{processors}")]);
        }
        let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
        for (from, to) in pairs {
            let Some(distance) = distance else { break };
            words.extend(["-numa".to_owned(), format!("dist,src={from},dst={to},val={distance}")]);
        }
        words
    }
}

impl FromStr for Nodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("numa is NxSIZE or SIZE+SIZE, of 2 to {MOST} nodes of 16M and more, not '{text}'");
        let size = |text: &str| match text.parse() {
            Ok(Size::Bytes(bytes)) if bytes >= LEAST => Ok(bytes),
            _ => Err(wrong()),
        };
        let nodes = match text.split_once('x') {
            Some((count, each)) => {
                let count =
                    count.parse().ok().filter(|count| (2..=MOST).contains(count)).ok_or_else(wrong)?;
                vec![size(each)?; count]
            }
            None => text.split('+').map(size).collect::<Result<Vec<u64>, String>>()?,
        };
        if (2..=MOST).contains(&nodes.len()) { Ok(Self(nodes)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(|&bytes| Size::Bytes(bytes).to_string()).collect();
        f.write_str(&sizes.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_as_people_write_them() {
        let two: Nodes = "2x512M".parse().unwrap();
        assert_eq!((two.bytes(), two.to_string().as_str()), (1 << 30, "512M+512M"));
        assert_eq!("768M+256M".parse::<Nodes>().unwrap().to_string(), "768M+256M");
        for wrong in ["", "512M", "1x512M", "9x64M", "2x1M", "2x", "x512M", "512M+", "2x100p"] {
            assert!(wrong.parse::<Nodes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn processors_are_dealt_in_turn_and_the_last_node_may_get_none() {
        let nodes: Nodes = "2x512M".parse().unwrap();
        let words = nodes.words(1, None).join(" ");
        assert!(
            words.contains("nodeid=0,memdev=node0,cpus=0") && words.ends_with("nodeid=1,memdev=node1"),
            "{words}"
        );
        let words = nodes.words(3, Some(40)).join(" ");
        assert!(words.contains("memdev=node0,cpus=0,cpus=2 "), "{words}");
        assert!(words.ends_with("-numa dist,src=0,dst=1,val=40"), "{words}");
    }
}
