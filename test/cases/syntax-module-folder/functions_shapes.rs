axes![N = 32, K = 64];
pub type Chip = m![1];
pub type Cluster = m![1 # 2];
pub type Slice = m![1 # 256];
pub type Rows = m![N, K];
